"""What every page needs: the user's rights and theme, the broker's name, the entries of the rail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from console.access import Verb, rights_of, roles_of
from console.models import UserSetting


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the rail; `pages` are the names of the pages below it."""

    page: str
    label: str
    icon: str
    pages: frozenset[str]
    verb: Verb = Verb.SEE


#: The pages about users, groups, roles and masking.
PEOPLE = frozenset(
    {"users", "user", "new-user", "change-user", "groups", "group", "roles"}
    | {"masking", "masking-rule", "new-masking-rule"}
)

RAIL = (
    Entry("overview", "Overview", "overview", frozenset({"overview"})),
    Entry("queues", "Queues", "queue", frozenset({"queues", "queue", "messages", "message", "new-queue", "purge"})),
    Entry("topics", "Topics", "topic", frozenset({"topics", "topic", "new-topic"})),
    Entry(
        "routing",
        "Routing",
        "routing",
        frozenset(
            {
                "routing",
                "choose-definition",
                "new-definition",
                "edit-definition",
                "delete-definition",
                "routing-policies",
                "routing-changes",
                "routing-version",
                "draft",
                "routing-import",
                "route-preview",
                "selector-tester",
                "routing-findings",
            }
        ),
    ),
    Entry("connections", "Connections", "connection", frozenset({"connections"})),
    Entry("analyses", "Analyses", "analysis", frozenset({"analyses", "run", "new-schedule", "start-run"})),
    Entry("audit", "Audit", "audit", frozenset({"audit"}), Verb.AUDIT),
    Entry(
        "users",
        "Users",
        "user",
        frozenset(
            {
                "users",
                "user",
                "new-user",
                "change-user",
                "groups",
                "group",
                "roles",
                "masking",
                "masking-rule",
                "new-masking-rule",
            }
        ),
        Verb.USERS,
    ),
)


def house(request: HttpRequest) -> dict[str, Any]:
    """Context of every page."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"theme": "auto", "broker": settings.SLUICE.broker_name}
    rights = rights_of(user)
    here = request.resolver_match.url_name if request.resolver_match else ""
    return {
        "rights": rights,
        "roles": ", ".join(sorted(roles_of(user))) or "no role",
        "theme": _theme_of(user),
        "themes": [("auto", "System"), ("light", "Light"), ("dark", "Dark")],
        "broker": settings.SLUICE.broker_name,
        "rail": [(entry, here in entry.pages) for entry in RAIL if rights[entry.verb.name.lower()]],
    }


def _theme_of(user: Any) -> str:
    setting = UserSetting.objects.filter(user=user).first()
    return setting.theme if setting else UserSetting.Theme.AUTO
