"""Who may do what: one table from verbs to roles, the decorator that enforces it, and the question templates ask."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from console import audit


class Role(StrEnum):
    """The groups a user may be in; a superuser is an admin."""

    ADMIN = "admin"
    SUPPORT = "support"
    VIEWER = "viewer"


class Verb(StrEnum):
    """What can be done; the value completes the sentence `needs the right to ...`."""

    SEE = "see lists and numbers"
    BROWSE = "browse messages"
    ROUTE = "change routing"
    CREATE = "create and delete destinations"
    PURGE = "purge queues"
    ANALYSE = "run and schedule analyses"
    AUDIT = "read the audit trail"
    DEMO = "start the demo"


_EVERYBODY = frozenset(Role)
_ADMIN = frozenset({Role.ADMIN})

ROLES_BY_VERB: dict[Verb, frozenset[Role]] = {
    Verb.SEE: _EVERYBODY,
    Verb.BROWSE: frozenset({Role.ADMIN, Role.SUPPORT}),
    Verb.ROUTE: _ADMIN,
    Verb.CREATE: _ADMIN,
    Verb.PURGE: _ADMIN,
    Verb.ANALYSE: _ADMIN,
    Verb.AUDIT: _ADMIN,
    Verb.DEMO: _ADMIN,
}


def roles_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[Role]:
    """The roles of a user; none for somebody who is not logged in or whose account is closed."""
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if not hasattr(user, "_roles"):
        names = {Role.ADMIN} if user.is_superuser else set()
        names.update(name for name in user.groups.values_list("name", flat=True) if name in set(Role))
        user._roles = frozenset(Role(name) for name in names)
    return user._roles


def may(user: AbstractBaseUser | AnonymousUser, verb: Verb) -> bool:
    """Whether this user has this right."""
    return not roles_of(user).isdisjoint(ROLES_BY_VERB[verb])


def rights_of(user: AbstractBaseUser | AnonymousUser) -> dict[str, bool]:
    """Every right by its name in lower case, for templates: `{% if rights.purge %}`."""
    return {verb.name.lower(): may(user, verb) for verb in Verb}


def still_here(user: AbstractBaseUser, session: SessionBase) -> AbstractBaseUser | None:
    """The user as the database has them now, with fresh roles; None when the session or the account has ended."""
    if not session.session_key or not session.exists(session.session_key):
        return None
    return get_user_model().objects.filter(pk=user.pk, is_active=True).first()


def lacking(verb: Verb) -> str:
    """The sentence that names a missing right."""
    roles = " or ".join(sorted(ROLES_BY_VERB[verb]))
    return f"This needs the right to {verb}, which comes with the role {roles}."


def needs(verb: Verb) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorates a view: without the right it answers 403, names what is missing and leaves a trace."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            if not may(request.user, verb):
                audit.denied(request, verb.name.lower(), request.path, lacking(verb))
                raise PermissionDenied(lacking(verb))
            return view(request, *args, **kwargs)

        guarded.verb = verb
        return guarded

    return decorate
