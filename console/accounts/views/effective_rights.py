"""Serve the page of effective permissions, and start and stop impersonation."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from console.access.permissions import Permission, permission_required
from console.access.roles import UNSCOPED_ROLES, Role
from console.accounts import effective_rights as effective
from console.accounts import impersonation
from console.accounts import users as accounts
from console.accounts.effective_rights import DESTINATION_PERMISSIONS, GROUP, KINDS, ROLE, USER, PermissionHolder
from console.audit import trail
from console.broker.mirror import mirror
from console.ui.formatting.tables import Table, TableColumn, TablePage
from console.ui.preferences.favourites import favourites_of

#: Names offered while one types: beyond these the name has to be known.
MAX_OFFERED = 300

#: What stands above the table of destinations, where the sentences of the rights are too long.
LABELS = {
    Permission.SEE: "See", Permission.BROWSE: "Browse", Permission.READ: "Bodies", Permission.RESUBMIT: "Resubmit",
    Permission.BULK: "In bulk", Permission.EDIT: "Edit", Permission.SEND: "Send", Permission.PAUSE: "Pause",
    Permission.REMOVE: "Delete", Permission.CREATE: "Create",
}  # fmt: skip
#: The order of what is told of one right.
_BY_WEIGHT = {"yes": 0, "masked": 1, "no": 2}


@require_GET
@permission_required(Permission.USERS)
def effective_rights(request: HttpRequest) -> HttpResponse:
    """Show permissions, pages and destinations of the holder in `kind` and `name` (for a role: `scopes`)."""
    holder, error = None, ""
    kind, name, scopes = (request.GET.get(key, "").strip() for key in ("kind", "name", "scopes"))
    try:
        holder = effective.find(kind, name, scopes.split()) if name else None
    except BrokerError as refused:
        error = str(refused)
    context: dict[str, Any] = {
        "kind": kind if kind in KINDS else USER, "name": name, "scopes": scopes, "error": error, "holder": holder,
        "offered": _offered(), "kinds": [(each, each.capitalize()) for each in KINDS],
        "examples": [Role.VIEWER, Role.SUPPORT, Role.ANALYST, Role.OPERATOR],
    }  # fmt: skip
    if holder is not None:
        page = _destinations(holder, request)
        rights, open_to = effective.scopes_by_permission(holder), effective.page_permissions(holder)
        context |= {
            "page": page,
            "all_url": page.url(q="", show=""),
            "holder_words": list(dict.fromkeys(map(accounts.describe_grant, holder.grants))),
            "sees_any": any(grant.allows(Permission.SEE) for grant in holder.grants),
            "rows": [
                (
                    each,
                    [
                        (LABELS[permission], cell)
                        for permission, cell in effective.destination_permissions(holder, each)
                    ],
                )
                for each in page.rows
            ],
            "held": [(permission, places) for permission, places in rights if places],
            "lacked": [permission for permission, places in rights if not places],
            "pages": open_to,
            "pages_open": sum(may for _, may in open_to),
            "minutes": impersonation.MINUTES,
            "part": "accounts/effective_destinations.html",
        }
    only_list = holder is not None and request.htmx and not request.htmx.boosted
    return render(request, "components/table.html" if only_list else "accounts/effective_rights.html", context)


def _offered() -> list[tuple[str, str]]:
    """Return the names that the input suggests, each with its kind."""
    users = User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)[:MAX_OFFERED]
    groups = Group.objects.order_by("name").values_list("name", flat=True)[:MAX_OFFERED]
    roles = [role for role in Role if role not in UNSCOPED_ROLES or role is Role.ADMIN]
    return [*((role, ROLE) for role in roles), *((each, GROUP) for each in groups), *((each, USER) for each in users)]


def _destinations(holder: PermissionHolder, request: HttpRequest) -> TablePage[Destination]:
    sees = holder.sees
    table = Table(
        columns=(
            TableColumn("name", "Destination", lambda each: each.name.lower()),
            *(
                TableColumn(
                    permission.name.lower(),
                    LABELS[permission],
                    _weight_of(holder, permission),
                    f"Permission: {permission}",
                )
                for permission in DESTINATION_PERMISSIONS
            ),
        ),
        chips={"seen": ("Seen", sees), "unseen": ("Not seen", lambda each: not sees(each))},
        text=str,
        subject=str,
    )
    kept = {"kind": holder.kind, "name": holder.name, "scopes": " ".join(holder.scopes)}
    return table.page(mirror().current().stats, request.GET, favourites_of(request.user), kept)


def _weight_of(holder: PermissionHolder, permission: Permission) -> Any:
    return lambda each: _BY_WEIGHT[effective.destination_permission(holder, permission, each)]


@require_POST
@never_cache
@permission_required(Permission.USERS)
def begin_impersonation(request: HttpRequest) -> HttpResponse:
    """Start impersonation and show the overview."""
    kind, name, scopes = (request.POST.get(key, "").strip() for key in ("kind", "name", "scopes"))
    try:
        with trail.recording(request, "see console as", f"{kind} {name}") as change:
            holder = effective.find(kind, name, scopes.split())
            impersonation.begin(request.session, holder)
            change.after = {"as": holder.description, "minutes": impersonation.MINUTES}
    except BrokerError as error:
        messages.error(request, str(error))
        return redirect(_page_of(request.POST))
    return redirect("overview")


@require_POST
@never_cache
def end_impersonation(request: HttpRequest) -> HttpResponse:
    """Stop impersonation and return to the holder's page."""
    kept = request.session.get(impersonation.KEY)
    if kept:
        with trail.recording(request, "stop seeing console as", f"{kept['kind']} {kept['name']}"):
            impersonation.end(request)
        return redirect(_page_of({**kept, "scopes": " ".join(kept["scopes"])}))
    return redirect("overview")


def _page_of(said: QueryDict | dict[str, Any]) -> str:
    """Return the URL of a holder's page, from the form or the session."""
    shown = {key: said[key] for key in ("kind", "name", "scopes") if said.get(key)}
    return f"{reverse('effective')}?{urlencode(shown)}"
