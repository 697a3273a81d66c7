"""Add to every page: permissions, display settings, broker name, version, navigation and notifications.

Parts of pages and pages that stand alone have no bar beside them: what that shows is looked up where it is drawn.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from brokerapp.system import extras
from brokerapp.version import VERSION
from console.access.permissions import Permission, has_permission, permissions_of, roles_of
from console.accounts.impersonation import impersonation_of, real_user
from console.alerts import notifications
from console.broker.restored_copy import restored_mark
from console.ui.navigation.command_palette import allowed_commands
from console.ui.navigation.menu import navigation_for
from console.ui.preferences import timezones
from console.ui.preferences.models import UserSetting
from console.ui.preferences.user_settings import settings_of


def site_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of every page."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"theme": "auto", "zone": timezones.UTC, "broker": settings.SLUICE.broker_name}
    rights = permissions_of(user)
    setting = settings_of(real_user(user))
    return {
        "rights": rights,
        "signed_in": real_user(user).get_username(),
        "copy_of": restored_mark(),
        "looking": impersonation_of(user),
        "impersonation_ended": getattr(request, "impersonation_ended", ""),
        "roles": ", ".join(sorted(roles_of(user))) or "no role",
        "theme": setting.theme,
        "themes": UserSetting.Theme.choices,
        "single_keys": setting.single_keys,
        "zone": timezones.current_zone_name(),
        "commands": allowed_commands(rights),
        "broker": settings.SLUICE.broker_name,
        "sluice_version": VERSION,
        "has_analytics": extras.is_installed(extras.ANALYTICS),
        "analytics_wheel": extras.wheel_with(extras.ANALYTICS),
        "outbox": settings.MAIL_OUTBOX,
        "bell": SimpleLazyObject(
            lambda: notifications.cells(user, settings_of(user)) if has_permission(user, Permission.SEE) else {}
        ),
        "navigation": SimpleLazyObject(lambda: navigation_for(rights, request.path)),
    }
