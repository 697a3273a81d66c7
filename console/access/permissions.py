"""Check permissions of Django's users: predicates for pages, and the decorator that enforces them.

Every page, socket topic and API operation asks here and nowhere else. What there is to ask for: `console.access.roles`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from brokerapp.model.destination import ANY_REST, Destination, DestinationKind
from console.access.models import Assignment
from console.access.roles import (
    Permission,
    Role,
    RoleGrant,
    Scope,
    Sees,
    TokenLimit,
    allows,
    everything,
    permission_message,
    token_permission_message,
)
from console.audit import trail

AnyUser = AbstractBaseUser | AnonymousUser


def grants_of(user: AnyUser) -> tuple[RoleGrant, ...]:
    """Return the roles of a user and of their groups, with scopes; none for anonymous and disabled users."""
    if not user.is_authenticated or not user.is_active:
        return ()
    if not hasattr(user, "_grants"):
        found = [RoleGrant(Role.ADMIN)] if user.is_superuser else []
        assignments = Assignment.objects.filter(Q(user=user) | Q(group__user=user))
        user._grants = (*found, *(each.grant for each in assignments))
    return user._grants


def restrict(user: AnyUser, limit: TokenLimit) -> None:
    """Restrict the permissions of this user object to those that the limit includes."""
    user._grants = tuple(replace(grant, limit=limit) for grant in grants_of(user))


def is_restricted(user: AnyUser) -> bool:
    """Return whether this user object has the permissions of a token only."""
    return any(grant.limit is not None for grant in grants_of(user))


def roles_of(user: AnyUser) -> frozenset[Role]:
    """Return the roles of a user, whatever their scopes."""
    return frozenset(grant.role for grant in grants_of(user))


def has_permission(user: AnyUser, permission: Permission, destination: Destination | None = None) -> bool:
    """Return whether the user has the permission for the destination (or all of a pattern); without one, anywhere."""
    return allows(grants_of(user), permission, destination)


def visible(user: AnyUser, permission: Permission = Permission.SEE) -> Sees:
    """Return a predicate: for which destinations the user has the permission; `everything` for all."""
    grants = _grants_with(user, permission)
    if any(grant.is_everywhere for grant in grants):
        return everything
    return lambda destination: allows(grants, permission, destination)


def pattern_filter(user: AnyUser, permission: Permission = Permission.SEE) -> Sees:
    """Return a predicate: for which patterns the user has the permission on some destination; `everything` for all.

    For what is about destinations by pattern: somebody may know of it when it concerns some that they see.
    """
    grants = _grants_with(user, permission)
    if any(grant.is_everywhere for grant in grants):
        return everything
    return lambda destination: any(grant.overlaps(destination) for grant in grants)


def scope_patterns(user: AnyUser, permission: Permission) -> tuple[str, ...] | None:
    """Return the patterns of destinations for which a user has the permission; None for all destinations."""
    grants = _grants_with(user, permission)
    if any(grant.is_everywhere for grant in grants):
        return None
    return tuple(dict.fromkeys(str(scope) for grant in grants for scope in grant.effective_scopes))


def _grants_with(user: AnyUser, permission: Permission) -> list[RoleGrant]:
    return [grant for grant in grants_of(user) if grant.allows(permission)]


def permissions_of(user: AnyUser) -> dict[str, bool]:
    """Map permission names in lower case to whether the user has them, for templates: `{% if rights.remove %}`."""
    return {permission.name.lower(): has_permission(user, permission) for permission in Permission}


def reload_user(user: AbstractBaseUser, session: SessionBase) -> AbstractBaseUser | None:
    """Return the user with fresh roles from the database; None when the session or the account has ended."""
    if not session.session_key or not session.exists(session.session_key):
        return None
    return get_user_model().objects.filter(pk=user.pk, is_active=True).first()


def require(request: HttpRequest, permission: Permission, destination: Destination | None = None) -> None:
    """Raise PermissionDenied without the permission, and write an audit entry."""
    if not has_permission(request.user, permission, destination):
        reason = missing_permission_message(request.user, permission, destination)
        trail.record_denied(request, permission.name.lower(), destination or request.path, reason)
        raise PermissionDenied(reason)


def missing_permission_message(user: AnyUser, permission: Permission, destination: Destination | None = None) -> str:
    """Say why a user lacks a permission: the token does not include it, or no role has it."""
    held = _scopes_in_words(user, permission)
    if is_restricted(user) and allows(
        (replace(grant, limit=None) for grant in grants_of(user)), permission, destination
    ):
        return token_permission_message(permission, destination, held)
    # Who has the right elsewhere is told where it is missing.
    return permission_message(permission, destination if has_permission(user, permission) else None, held)


def _scopes_in_words(user: AnyUser, permission: Permission) -> str:
    """Return the patterns for which the user has the permission, in words; "" where there are none."""
    scopes = (scope for grant in _grants_with(user, permission) for scope in grant.effective_scopes)
    return ", ".join(dict.fromkeys(map(str, scopes)))


def require_everywhere(request: HttpRequest, permission: Permission) -> None:
    """Raise PermissionDenied unless the user has the permission for all destinations."""
    for place in Scope(ANY_REST).destinations:
        require(request, permission, place)


DestinationFromUrl = Callable[[dict[str, Any]], Destination]


def queue_from_url(arguments: dict[str, Any]) -> Destination:
    """Return the queue that a page is about, from the arguments of its URL."""
    return Destination.queue(arguments["name"])


def destination_from_url(arguments: dict[str, Any]) -> Destination:
    """Return the queue or topic that a page is about, from the arguments of its URL."""
    return Destination(DestinationKind(arguments["kind"]), arguments["name"])


def permission_required(
    permission: Permission, of: DestinationFromUrl | None = None
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorate a view to answer 403 without the permission; `of` finds the destination in the URL's arguments."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            require(request, permission, of(kwargs) if of else None)
            return view(request, *args, **kwargs)

        guarded.permission = permission
        return guarded

    return decorate
