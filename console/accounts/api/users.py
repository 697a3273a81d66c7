"""Serve operations on users, their roles and API tokens, and the caller's own permissions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import Field

from console.access.models import Assignment
from console.access.permissions import grants_of, has_permission
from console.access.roles import Permission
from console.accounts import api_tokens, users
from console.accounts.models import ApiToken
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, Text, page_of
from console.audit import trail

router = Router(tags=["people"])


class MeOut(Schema):
    """Describe the caller and their permissions."""

    name: str
    roles: list[str]
    verbs: list[str]


class AssignmentOut(Schema):
    """Describe an assigned role with scopes and additional permissions."""

    id: int
    role: str
    scopes: list[str]
    extras: list[str]


class UserOut(Schema):
    """Describe a user with roles and groups."""

    id: int
    name: str = Field(validation_alias="username")
    email: str
    active: bool = Field(validation_alias="is_active")
    groups: list[str]
    assignments: list[AssignmentOut]

    @staticmethod
    def resolve_groups(user: User) -> list[str]:
        """Return the names of the groups, sorted."""
        return sorted(each.name for each in user.groups.all())


class UserIn(RequestBody):
    """Describe a user to create, without a password: for example a service account that uses tokens."""

    name: str
    email: str = ""


class AssignmentIn(RequestBody):
    """Describe a role to assign, with scopes and additional permissions."""

    role: str
    scopes: list[str] = []
    extras: list[str] = []


class UserStateIn(RequestBody):
    """Describe whether the account is enabled."""

    active: bool


class TokenOut(Schema):
    """Describe an API token, without its text."""

    id: int
    user: Text
    name: str
    hint: str
    verbs: list[str]
    scopes: list[str]
    made_by: str
    created: datetime
    expires: datetime
    used: datetime | None
    used_from: str


class TokenCreatedOut(TokenOut):
    """Describe a new API token with its text, which is returned once."""

    token: str


class TokenIn(RequestBody):
    """Describe an API token to create."""

    name: str
    verbs: list[str]
    scopes: list[str] = []
    days: int = api_tokens.DEFAULT_DAYS
    user: str = ""


class PasswordResetIn(RequestBody):
    """Describe how to reset a password: a generated password, or a link."""

    way: Literal["password", "link"] = "link"


class PasswordResetOut(Schema):
    """Return the new password or the link; the other is empty."""

    password: str
    link: str


@operation(router, "GET", "/me", Permission.SEE, response=MeOut)
def get_me(request: HttpRequest) -> Any:
    """Get the caller's name, roles and permissions."""
    roles = sorted({str(grant.role) for grant in grants_of(request.user)})
    permissions = [permission.name.lower() for permission in Permission if has_permission(request.user, permission)]
    return {"name": request.user.get_username(), "roles": roles, "verbs": permissions}


@operation(router, "GET", "/users", Permission.USERS, response=Page[UserOut])
def list_users(request: HttpRequest, query: Paged, q: str = "") -> Any:
    """List users with their roles and groups."""
    found = User.objects.filter(username__icontains=q).order_by("username")
    return page_of(found.prefetch_related("assignments", "groups"), query)


@operation(router, "POST", "/users", Permission.USERS, response={201: UserOut})
def create_user(request: HttpRequest, wanted: UserIn) -> Any:
    """Create a user without a password and roles."""
    with trail.recording(request, "create user", wanted.name) as change:
        user = users.create_user(wanted.name, wanted.email)
        change.after = users.audit_state(user)
    return Status(201, user)


@operation(router, "PUT", "/users/{int:user_id}/active", Permission.USERS, response=UserOut)
def switch_user(request: HttpRequest, user_id: int, state: UserStateIn) -> Any:
    """Enable or disable an account."""
    user = get_object_or_404(User, pk=user_id)
    with users.recording(request, "open account" if state.active else "close account", user):
        users.set_active(user, state.active)
    return user


@operation(router, "POST", "/users/{int:user_id}/unlock", Permission.USERS, response=UserOut)
def unlock_user(request: HttpRequest, user_id: int) -> Any:
    """Unlock an account after too many wrong passwords."""
    user = get_object_or_404(User, pk=user_id)
    with users.recording(request, "unlock account", user):
        users.unlock(user)
    return user


@operation(router, "DELETE", "/users/{int:user_id}/second-factor", Permission.USERS, response=UserOut)
def reset_second_factor(request: HttpRequest, user_id: int) -> Any:
    """Reset the two-factor authentication of a user who lost the device."""
    user = get_object_or_404(User, pk=user_id)
    with users.recording(request, "reset second factor", user):
        users.reset_second_factor(user)
    return user


@operation(router, "POST", "/users/{int:user_id}/way-in", Permission.USERS, response=PasswordResetOut)
def reset_password(request: HttpRequest, user_id: int, wanted: PasswordResetIn) -> Any:
    """Reset a password to a generated one, or create a reset link; returned once."""
    user = get_object_or_404(User, pk=user_id)
    with users.recording(request, "reset password", user):
        if wanted.way == "password":
            return {"password": users.generate_password(user), "link": ""}
        return {"password": "", "link": users.invitation_link(request, user)}


@operation(router, "POST", "/users/{int:user_id}/assignments", Permission.USERS, response={201: UserOut})
def assign_role(request: HttpRequest, user_id: int, wanted: AssignmentIn) -> Any:
    """Assign a role to a user."""
    user = get_object_or_404(User, pk=user_id)
    with users.recording(request, "give role", user):
        users.assign_role(user, users.build_assignment(wanted.role, wanted.scopes, wanted.extras))
    return Status(201, user)


@operation(router, "DELETE", "/users/{int:user_id}/assignments/{int:assignment_id}", Permission.USERS, response=UserOut)
def withdraw_role(request: HttpRequest, user_id: int, assignment_id: int) -> Any:
    """Remove a role from a user."""
    user = get_object_or_404(User, pk=user_id)
    assignment = get_object_or_404(Assignment, pk=assignment_id, user=user)
    with users.recording(request, "take role", user):
        users.remove_role(assignment)
    return user


@operation(router, "GET", "/tokens", Permission.SEE, response=list[TokenOut])
def list_tokens(request: HttpRequest) -> Any:
    """List active tokens: your own, or all with the permission to manage users."""
    return api_tokens.active_tokens(None if has_permission(request.user, Permission.USERS) else request.user)


@operation(router, "POST", "/tokens", Permission.SEE, response={201: TokenCreatedOut})
def create_token(request: HttpRequest, wanted: TokenIn) -> Any:
    """Create a token. A token cannot create one with more permissions than its own."""
    token, text = api_tokens.create_and_record(
        request, wanted.user, wanted.name, wanted.verbs, wanted.scopes, wanted.days
    )
    return Status(201, TokenOut.from_orm(token).dict() | {"token": text})


@operation(router, "DELETE", "/tokens/{int:token_id}", Permission.SEE, response={204: None})
def revoke_token(request: HttpRequest, token_id: int) -> Any:
    """Revoke one of your tokens, or any with the permission to manage users."""
    api_tokens.revoke_and_record(request, get_object_or_404(ApiToken, pk=token_id, revoked=None))
    return Status(204, None)
