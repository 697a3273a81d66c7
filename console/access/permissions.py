"""Who may do what: the rights of Django's users, the decorator that enforces them, and the questions pages ask.

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
    ROLES_BY_VERB,
    Role,
    RoleGrant,
    Scope,
    Sees,
    TokenLimit,
    Verb,
    allows,
    everything,
    permission_message,
    token_permission_message,
)
from console.audit import trail

__all__ = [
    "ROLES_BY_VERB",
    "Role",
    "RoleGrant",
    "Verb",
    "destination_from_url",
    "grants_of",
    "has_permission",
    "is_restricted",
    "missing_permission_message",
    "pattern_filter",
    "permission_message",
    "permission_required",
    "permissions_of",
    "queue_from_url",
    "reload_user",
    "require",
    "require_everywhere",
    "restrict",
    "roles_of",
    "visible",
]

AnyUser = AbstractBaseUser | AnonymousUser


def grants_of(user: AnyUser) -> tuple[RoleGrant, ...]:
    """The roles of a user, their own and their groups', with scopes; none for whoever is not logged in or closed."""
    if not user.is_authenticated or not user.is_active:
        return ()
    if not hasattr(user, "_grants"):
        found = [RoleGrant(Role.ADMIN)] if user.is_superuser else []
        assignments = Assignment.objects.filter(Q(user=user) | Q(group__user=user))
        user._grants = (*found, *(each.grant for each in assignments))
    return user._grants


def restrict(user: AnyUser, limit: TokenLimit) -> None:
    """Take rights away from this user object, for as long as it lives: those that the limit does not name."""
    user._grants = tuple(replace(grant, limit=limit) for grant in grants_of(user))


def is_restricted(user: AnyUser) -> bool:
    """Whether rights were taken away from this user object: somebody came with a token."""
    return any(grant.limit is not None for grant in grants_of(user))


def roles_of(user: AnyUser) -> frozenset[Role]:
    """The roles of a user, whatever their scopes."""
    return frozenset(grant.role for grant in grants_of(user))


def has_permission(user: AnyUser, verb: Verb, destination: Destination | None = None) -> bool:
    """Whether this user has this right for the destination (of a pattern: for all it names); without one: anywhere."""
    return allows(grants_of(user), verb, destination)


def visible(user: AnyUser, verb: Verb = Verb.SEE) -> Sees:
    """A predicate that says for which destinations this user has the right; `everything` for all."""
    grants = _grants_with(user, verb)
    if any(grant.is_everywhere for grant in grants):
        return everything
    return lambda destination: allows(grants, verb, destination)


def pattern_filter(user: AnyUser, verb: Verb = Verb.SEE) -> Sees:
    """A predicate that says of which patterns this user has the right for some destination; `everything` for all.

    For what is about destinations by pattern: somebody may know of it when it concerns some that they see.
    """
    grants = _grants_with(user, verb)
    if any(grant.is_everywhere for grant in grants):
        return everything
    return lambda destination: any(grant.overlaps(destination) for grant in grants)


def _grants_with(user: AnyUser, verb: Verb) -> list[RoleGrant]:
    return [grant for grant in grants_of(user) if grant.allows(verb)]


def permissions_of(user: AnyUser) -> dict[str, bool]:
    """Every right by its name in lower case, for templates: `{% if rights.remove %}`, whatever its scopes."""
    return {verb.name.lower(): has_permission(user, verb) for verb in Verb}


def reload_user(user: AbstractBaseUser, session: SessionBase) -> AbstractBaseUser | None:
    """The user as the database has them now, with fresh roles; None when the session or the account has ended."""
    if not session.session_key or not session.exists(session.session_key):
        return None
    return get_user_model().objects.filter(pk=user.pk, is_active=True).first()


def require(request: HttpRequest, verb: Verb, destination: Destination | None = None) -> None:
    """Raise PermissionDenied, which becomes a page that names what is missing, and leave a trace, without the right."""
    if not has_permission(request.user, verb, destination):
        reason = missing_permission_message(request.user, verb, destination)
        trail.record_denied(request, verb.name.lower(), destination or request.path, reason)
        raise PermissionDenied(reason)


def missing_permission_message(user: AnyUser, verb: Verb, destination: Destination | None = None) -> str:
    """Say why a user lacks a right: the token leaves it out that they came with, or their roles do not have it."""
    held = _scopes_in_words(user, verb)
    if is_restricted(user) and allows((replace(grant, limit=None) for grant in grants_of(user)), verb, destination):
        return token_permission_message(verb, destination, held)
    # Who has the right elsewhere is told where it is missing.
    return permission_message(verb, destination if has_permission(user, verb) else None, held)


def _scopes_in_words(user: AnyUser, verb: Verb) -> str:
    """The patterns for which somebody has the right, in words; "" where they have it nowhere."""
    scopes = (scope for grant in _grants_with(user, verb) for scope in grant.effective_scopes)
    return ", ".join(dict.fromkeys(map(str, scopes)))


def require_everywhere(request: HttpRequest, verb: Verb) -> None:
    """Raise PermissionDenied unless the right is for all destinations: what is asked for is about all of them."""
    for place in Scope(ANY_REST).destinations:
        require(request, verb, place)


DestinationFromUrl = Callable[[dict[str, Any]], Destination]


def queue_from_url(arguments: dict[str, Any]) -> Destination:
    """The queue that a page is about, by the arguments of its url."""
    return Destination.queue(arguments["name"])


def destination_from_url(arguments: dict[str, Any]) -> Destination:
    """The queue or topic that a page is about, by the arguments of its url."""
    return Destination(DestinationKind(arguments["kind"]), arguments["name"])


def permission_required(
    verb: Verb, of: DestinationFromUrl | None = None
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorates a view: without the right it answers 403. `of` finds the destination, where the page is about one."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            require(request, verb, of(kwargs) if of else None)
            return view(request, *args, **kwargs)

        guarded.verb = verb
        return guarded

    return decorate
