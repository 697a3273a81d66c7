"""Create and change users, groups and role assignments; callers write the audit entries, with `recording`.

Whatever is refused raises RequestRefused with a sentence for whoever asked.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from allauth.usersessions.models import UserSession
from axes.utils import reset as forget_failures
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from brokerapp.errors import RequestRefused
from console.access.models import Assignment
from console.access.roles import EXTRAS, UNSCOPED_ROLES, Role, RoleGrant, Scope
from console.audit import trail

#: Bytes of chance in a generated password: 16 characters.
PASSWORD_BYTES = 12
#: Scopes of one assignment: more should be a pattern.
MAX_SCOPES = 50

RoleHolder = User | Group


def create_user(name: str, email: str = "") -> User:
    """Create a user without a password and roles, who cannot sign in yet."""
    user = User(username=name.strip(), email=email.strip())
    user.set_unusable_password()
    try:
        user.full_clean(exclude=["password"])
        with transaction.atomic():
            user.save()
    except ValidationError as error:
        raise RequestRefused(" ".join(error.messages)) from error
    except IntegrityError as error:
        raise RequestRefused(f"User {name!r} already exists.") from error
    return user


def generate_password(user: User) -> str:
    """Set a random password, which ends the user's sessions; return it to be shown once."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def invitation_link(request: HttpRequest, user: User) -> str:
    """Return a link to set a password, valid once within PASSWORD_RESET_TIMEOUT."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    path = reverse("invitation", kwargs={"uidb64": uid, "token": default_token_generator.make_token(user)})
    return request.build_absolute_uri(path)


def set_active(user: User, is_active: bool) -> None:
    """Disable an account, which ends its sessions and STOMP logins, or enable it."""
    with require_remaining_admin():
        user.is_active = is_active
        user.save(update_fields=["is_active"])


def reset_second_factor(user: User) -> None:
    """Remove the user's second factor and recovery codes, and end their sessions. Raises RequestRefused."""
    if not user.authenticator_set.all().delete()[0]:
        raise RequestRefused(f"{user} does not use two-factor authentication")
    for session in UserSession.objects.filter(user=user):  # whoever found the device may be signed in
        session.end()


def unlock(user: User) -> int:
    """Delete failed sign-ins, so that a locked user can try again; return their number."""
    return forget_failures(username=user.get_username())


# -- roles


def build_assignment(role: str, scopes: Iterable[str], extras: Iterable[str]) -> Assignment:
    """Return an assignment without a holder. Raises RequestRefused, InvalidDestination."""
    if role not in set(Role):
        raise RequestRefused(f"{role!r} is not one of the roles {', '.join(Role)}")
    patterns = list(dict.fromkeys(str(Scope.parse(text)) for text in scopes if text.strip()))
    if patterns and role in UNSCOPED_ROLES:
        raise RequestRefused(f"The role {role} cannot be limited to a scope.")
    if len(patterns) > MAX_SCOPES:
        raise RequestRefused(f"A role assignment can have at most {MAX_SCOPES} scopes. Use patterns.")
    wanted = sorted(set(extras))
    if wrong := [
        each for each in wanted if each.upper() not in {permission.name for permission in EXTRAS.get(Role(role), ())}
    ]:
        raise RequestRefused(f"The permission {', '.join(wrong)} cannot be added to the role {role}.")
    return Assignment(role=role, scopes=patterns, extras=wanted)


def assign_role(holder: RoleHolder, assignment: Assignment) -> Assignment:
    """Assign the role to a user or to a group."""
    if isinstance(holder, Group):
        assignment.group = holder
    else:
        assignment.user = holder
    if any(each.grant == assignment.grant for each in holder.assignments.all()):
        raise RequestRefused(f"{holder} already has this role with this scope.")
    assignment.save()
    return assignment


def remove_role(assignment: Assignment) -> None:
    """Remove a role assignment."""
    with require_remaining_admin():
        assignment.delete()


def set_groups(user: User, groups: Iterable[Group]) -> None:
    """Set the groups of a user."""
    with require_remaining_admin():
        user.groups.set(groups)


def create_group(name: str) -> Group:
    """Create a group without roles and members. Raises RequestRefused."""
    name = name.strip()[:150]
    if not name:
        raise RequestRefused("Enter a group name.")
    if Group.objects.filter(name=name).exists():
        raise RequestRefused(f"Group {name} already exists.")
    return Group.objects.create(name=name)


def delete_group(group: Group) -> None:
    """Delete a group with its roles; its members are kept."""
    with require_remaining_admin():
        group.delete()


def admins() -> QuerySet[User]:
    """Return the active users with all permissions."""
    is_admin = Q(is_superuser=True) | Q(assignments__role=Role.ADMIN) | Q(groups__assignments__role=Role.ADMIN)
    return User.objects.filter(is_admin, is_active=True).distinct()


@contextmanager
def require_remaining_admin() -> Iterator[None]:
    """Roll the block back if no admin would be left."""
    with transaction.atomic():
        # Two who take each other's role away at the same time wait for each other here.
        list(Assignment.objects.select_for_update().filter(role=Role.ADMIN).values_list("id", flat=True))
        yield
        if not admins().exists():
            raise RequestRefused("Cannot remove the last admin. Assign the role to another user first.")


# -- in the audit log


@contextmanager
def recording(request: HttpRequest, action: str, holder: RoleHolder) -> Iterator[None]:
    """Write an audit entry for a change, with the state of the user or group before and after it."""
    kind = "group" if isinstance(holder, Group) else "user"
    with trail.recording(request, action, f"{kind} {holder}", before=audit_state(holder)) as change:
        pk = holder.pk
        yield
        changed = type(holder).objects.filter(pk=pk).first()
        change.after = audit_state(changed) if changed is not None else None


def audit_state(holder: RoleHolder) -> dict[str, Any]:
    """Return a user or group as audit entries show it before and after a change."""
    facts: dict[str, Any] = {"roles": [describe_grant(each.grant) for each in holder.assignments.all()]}
    if isinstance(holder, User):
        facts["active"] = holder.is_active
        facts["groups"] = sorted(holder.groups.values_list("name", flat=True))
    return facts


def describe_grant(grant: RoleGrant) -> str:
    """Return a grant in words: `support for orders.>, with permission to ...`."""
    where = f" for {', '.join(map(str, grant.scopes))}" if grant.scopes else ""
    more = f", with permission to {', '.join(sorted(grant.extras))}" if grant.extras else ""
    return f"{grant.role}{where}{more}"
