"""What every page needs: the user's rights and theme, the broker's name, the entries of the rail.

Parts of pages and pages that stand alone have no bar beside them: what that shows is looked up where it is drawn.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from console import bell, zones
from console.access import Verb, may, rights_of, roles_of
from console.commands import allowed
from console.models import UserSetting
from console.rail import rail_of
from console.seen_as import look_of, person
from console.setting import setting_of


def house(request: HttpRequest) -> dict[str, Any]:
    """Context of every page."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"theme": "auto", "zone": zones.UTC, "broker": settings.SLUICE.broker_name}
    rights = rights_of(user)
    setting = setting_of(person(user))
    return {
        "rights": rights,
        "signed_in": person(user).get_username(),
        "looking": look_of(user),
        "impersonation_ended": getattr(request, "impersonation_ended", ""),
        "roles": ", ".join(sorted(roles_of(user))) or "no role",
        "theme": setting.theme,
        "themes": UserSetting.Theme.choices,
        "single_keys": setting.single_keys,
        "zone": zones.current(),
        "commands": allowed(rights),
        "broker": settings.SLUICE.broker_name,
        "outbox": settings.MAIL_OUTBOX,
        "bell": SimpleLazyObject(lambda: bell.cells(user, setting_of(user)) if may(user, Verb.SEE) else {}),
        "rail": SimpleLazyObject(lambda: rail_of(rights, request.path)),
    }
