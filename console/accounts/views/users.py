"""Serve the pages of users, groups and roles for administrators."""

from __future__ import annotations

import json
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.model.destination import Destination
from console.access.models import Assignment
from console.access.permissions import Permission, permission_required
from console.access.roles import EXTRAS, MASKED_ROLES, ROLES_BY_PERMISSION, UNSCOPED_ROLES, Role
from console.accounts import effective_rights
from console.accounts import users as accounts
from console.accounts.encryption import decrypt, encrypt
from console.accounts.impersonation import impersonation_of
from console.accounts.login import recent_login_required
from console.audit import trail

PAGE_SIZE = 50
#: In the session, until the next page of a user: what that page shows once.
SECRET = "shown_once"
#: What the list can be narrowed to.
STATE_LABELS = {"": "All", "active": "Active", "closed": "Disabled"}
SORT_LABELS = {"username": "Name", "-last_login": "Last sign-in", "-date_joined": "Newest"}
STATES = {"": Q(), "active": Q(is_active=True), "closed": Q(is_active=False)}
SORTS = ("username", "-username", "last_login", "-last_login", "date_joined", "-date_joined")


@require_GET
@permission_required(Permission.USERS)
def users(request: HttpRequest) -> HttpResponse:
    """List users: `q` is part of a name or email, `state`, `role` and `sort` filter and order."""
    text, state, role = (request.GET.get(name, "").strip() for name in ("q", "state", "role"))
    sort = request.GET.get("sort") if request.GET.get("sort") in SORTS else "username"
    found = User.objects.filter(STATES.get(state, Q()))
    if text:
        found = found.filter(Q(username__icontains=text) | Q(email__icontains=text))
    if role in set(Role):
        has_role = Q(assignments__role=role) | Q(groups__assignments__role=role)
        found = found.filter(has_role | Q(is_superuser=True) if role == Role.ADMIN else has_role).distinct()
    found = found.order_by(sort).prefetch_related("assignments", "groups__assignments")
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    context = {
        "page": page,
        "rows": [(user, _roles_in_words(user)) for user in page],
        "text": text,
        "state": state,
        "role": role,
        "sort": sort,
        "roles": list(Role),
        "query": query.urlencode(),
        "states": STATE_LABELS.items(),
        "sorts": SORT_LABELS.items(),
        "total": User.objects.count(),
    }
    return render(request, "accounts/users.html", context)


def _roles_in_words(user: User) -> list[str]:
    own = [accounts.describe_grant(each.grant) for each in user.assignments.all()]
    by_group = [
        f"{accounts.describe_grant(each.grant)} (group {group})"
        for group in user.groups.all()
        for each in group.assignments.all()
        if each.role != group.name
    ]
    plain = [group.name for group in user.groups.all() if group.name in set(Role)]
    return list(dict.fromkeys([*(["admin"] if user.is_superuser else []), *own, *plain, *by_group]))


@require_http_methods(["GET", "POST"])
@never_cache
@permission_required(Permission.USERS)
@recent_login_required
def new_user(request: HttpRequest) -> HttpResponse:
    """Create a user with a first role, and a password or invitation link that is shown once."""
    context: dict[str, Any] = {"typed": request.POST, "error": "", **_choices()}
    if request.method == "POST":
        try:
            user, secret = _created(request)
            messages.success(
                request,
                f"User {user} created." if secret["password"] else f"User {user} created. Send the invitation link.",
            )
            return _shown_once(request, user, secret)
        except BrokerError as error:
            context["error"] = str(error)
    return render(request, "accounts/new_user.html", context, status=400 if context["error"] else 200)


def _created(request: HttpRequest) -> tuple[User, dict[str, str]]:
    name = request.POST.get("username", "").strip()
    with trail.recording(request, "create user", name) as change:
        assignment = _typed_assignment(request) if request.POST.get("role") else None
        user = accounts.create_user(name, request.POST.get("email", ""))
        if assignment is not None:
            accounts.assign_role(user, assignment)
        change.after = accounts.audit_state(user)
    return user, _way_in(request, user)


def _way_in(request: HttpRequest, user: User) -> dict[str, str]:
    """Return a new password or a reset link, as the form asks."""
    if request.POST.get("way") == "password":
        return {"password": accounts.generate_password(user), "link": ""}
    return {"password": "", "link": accounts.invitation_link(request, user)}


def _typed_assignment(request: HttpRequest) -> Assignment:
    scopes = request.POST.get("scopes", "").split()
    return accounts.build_assignment(request.POST.get("role", ""), scopes, request.POST.getlist("extras"))


def _choices() -> dict[str, Any]:
    return {
        "roles": [
            (
                role,
                [permission for permission in Permission if role in ROLES_BY_PERMISSION[permission]],
                role in UNSCOPED_ROLES,
            )
            for role in Role
        ],
        "extras": [
            (role, permission.name.lower(), permission)
            for role, permissions in EXTRAS.items()
            for permission in sorted(permissions)
        ],
    }


def _shown_once(request: HttpRequest, user: User, secret: dict[str, str]) -> HttpResponse:
    """Redirect to the user's page, which shows the secret once."""
    request.session[SECRET] = encrypt(json.dumps({"user": user.pk, **secret}))
    return redirect("user", user_id=user.pk)


@require_GET
@never_cache
@permission_required(Permission.USERS)
def user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show a user: status, roles, groups and effective permissions, for a destination if one is given."""
    user = get_object_or_404(User, pk=user_id)
    # Shown now or never, and to nobody else's eyes.
    sealed = request.session.pop(SECRET, None) if impersonation_of(request.user) is None else None
    secret = json.loads(decrypt(sealed)) if sealed else None
    asked, wrong = request.GET.get("destination", "").strip(), ""
    destination = None
    try:
        destination = Destination.parse(asked) if asked else None
    except BrokerError as error:
        wrong = str(error)
    holder = effective_rights.user_holder(user)
    context = {
        "person": user,
        "assignments": _listed(user),
        "groups": [(group, group in user.groups.all()) for group in Group.objects.order_by("name")],
        "effective": [
            (permission, sources, effective_rights.destination_permission(holder, permission, destination)
             if destination else "yes" if sources else "no")
            for permission, sources in effective_rights.scopes_by_permission(holder)
        ],
        "asked": asked,
        "wrong": wrong,
        "destination": destination,
        "locked": AccessAttempt.objects.filter(
            username=user.get_username(), failures_since_start__gte=settings.AXES_FAILURE_LIMIT
        ).exists(),
        "has_factor": is_mfa_enabled(user),
        "secret": secret if secret and secret["user"] == user.pk else None,
        **_choices(),
    }  # fmt: skip
    return render(request, "accounts/user.html", context)


def _listed(holder: User | Group) -> list[tuple[Assignment, str]]:
    return [(each, accounts.describe_grant(each.grant)) for each in holder.assignments.all()]


@require_POST
@never_cache
@permission_required(Permission.USERS)
@recent_login_required
def change_user(request: HttpRequest, user_id: int, action: str) -> HttpResponse:
    """Disable, enable or unlock an account, reset password or second factor, or set groups."""
    person = get_object_or_404(User, pk=user_id)
    if action not in USER_ACTIONS:
        raise Http404(f"Unknown action: {action}.")
    words, act, done = USER_ACTIONS[action]
    secret = None
    try:
        with accounts.recording(request, words, person):
            secret = act(request, person)
        messages.success(request, done.format(person))
    except RequestRefused as error:
        messages.error(request, str(error))
    if secret:
        return _shown_once(request, person, secret)
    return redirect("user", user_id=user_id)


def _set_groups(request: HttpRequest, person: User) -> None:
    chosen = [each for each in request.POST.getlist("groups") if each.isdecimal()]
    accounts.set_groups(person, Group.objects.filter(pk__in=chosen))


def _reset_password(request: HttpRequest, person: User) -> dict[str, str]:
    return _way_in(request, person)


#: What one can do to a user: how the trail calls it, what does it, what is said then.
USER_ACTIONS: dict[str, tuple[str, Any, str]] = {
    "close": ("close account", lambda request, person: accounts.set_active(person, False), "Account {} disabled."),
    "open": ("open account", lambda request, person: accounts.set_active(person, True), "Account {} enabled."),
    "unlock": ("unlock account", lambda request, person: accounts.unlock(person) and None, "Account {} unlocked."),
    "factor": (
        "reset second factor",
        lambda request, person: accounts.reset_second_factor(person),
        "Two-factor authentication of {} reset.",
    ),
    "password": ("reset password", _reset_password, "Password of {} reset."),
    "groups": ("set groups", _set_groups, "Groups of {} saved."),
}


@require_POST
@permission_required(Permission.USERS)
@recent_login_required
def assign_role(request: HttpRequest, holder: str, holder_id: int) -> HttpResponse:
    """Assign a role to a user or a group."""
    found = get_object_or_404(HOLDERS[holder], pk=holder_id)
    try:
        with accounts.recording(request, "give role", found):
            accounts.assign_role(found, _typed_assignment(request))
        messages.success(request, f"Role assigned to {found}.")
    except BrokerError as error:
        messages.error(request, str(error))
    return _back_to(holder, found.pk)


@require_POST
@permission_required(Permission.USERS)
@recent_login_required
def remove_role(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Remove a role from a user or a group."""
    assignment = get_object_or_404(Assignment, pk=assignment_id)
    found = assignment.group or assignment.user
    holder = "group" if assignment.group else "user"
    try:
        with accounts.recording(request, "take role", found):
            accounts.remove_role(assignment)
        messages.success(request, f"Role removed from {found}.")
    except RequestRefused as error:
        messages.error(request, str(error))
    return _back_to(holder, found.pk)


HOLDERS: dict[str, Any] = {"user": User, "group": Group}


def _back_to(holder: str, holder_id: int) -> HttpResponse:
    return redirect(holder, **{f"{holder}_id": holder_id})


# -- groups


@require_http_methods(["GET", "POST"])
@permission_required(Permission.USERS)
@recent_login_required
def groups(request: HttpRequest) -> HttpResponse:
    """List groups with their roles; on POST create one."""
    if request.method == "POST":
        name = request.POST.get("name", "")
        try:
            with trail.recording(request, "create group", f"group {name}"):
                made = accounts.create_group(name)
            messages.success(request, f"Group {made} created. Assign a role, then add users.")
            return redirect("group", group_id=made.pk)
        except RequestRefused as error:
            messages.error(request, str(error))
    found = Group.objects.annotate(members=Count("user")).order_by("name").prefetch_related("assignments")
    rows = [(each, [words for _, words in _listed(each)]) for each in found]
    return render(request, "accounts/groups.html", {"rows": rows})


@require_GET
@permission_required(Permission.USERS)
def group(request: HttpRequest, group_id: int) -> HttpResponse:
    """Show a group with roles and members."""
    found = get_object_or_404(Group, pk=group_id)
    members = Paginator(found.user_set.order_by("username"), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"group": found, "assignments": _listed(found), "page": members, **_choices()}
    return render(request, "accounts/group.html", context)


@require_POST
@permission_required(Permission.USERS)
@recent_login_required
def delete_group(request: HttpRequest, group_id: int) -> HttpResponse:
    """Delete a group; its members lose its roles."""
    found = get_object_or_404(Group, pk=group_id)
    try:
        with accounts.recording(request, "delete group", found):
            accounts.delete_group(found)
        messages.success(request, f"Group {found} deleted.")
    except RequestRefused as error:
        messages.error(request, str(error))
        return redirect("group", group_id=group_id)
    return redirect("groups")


@require_GET
@permission_required(Permission.USERS)
def roles(request: HttpRequest) -> HttpResponse:
    """Show the permissions of each role."""
    table = [(permission, [(role, _role_state(role, permission)) for role in Role]) for permission in Permission]
    return render(request, "accounts/roles.html", {"roles": list(Role), "table": table})


def _role_state(role: Role, permission: Permission) -> str:
    if role in ROLES_BY_PERMISSION[permission]:
        return "masked" if permission is Permission.READ and role in MASKED_ROLES else "yes"
    return "extra" if permission in EXTRAS.get(role, ()) else "no"
