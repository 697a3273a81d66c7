"""Create, check and revoke API tokens, which have a part of their user's permissions and expire."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, has_permission, is_restricted, require, restrict
from console.access.roles import Scope, TokenLimit
from console.accounts.models import ApiToken
from console.audit import trail

#: How every token begins, so that a search for leaked secrets finds it.
PREFIX = "sluice_"
#: Bytes of chance in one: nobody guesses it, so a plain digest is enough and costs no time.
TOKEN_BYTES = 32
#: Characters of a token that are shown later.
HINT_LENGTH = len(PREFIX) + 4
#: Days that a token may live.
MAX_DAYS, DEFAULT_DAYS = 366, 90
#: Tokens of one user that are in force.
MAX_TOKENS = 50
#: The last use is noted no more often than this.
LAST_USE_RESOLUTION = timedelta(minutes=1)


def create_token(
    user: User, name: str, permissions: Iterable[str], scopes: Iterable[str], days: int, made_by: str
) -> tuple[ApiToken, str]:
    """Create a token; return it and its text, which is not stored. Raises RequestRefused, InvalidDestination."""
    name, wanted = name.strip(), list(dict.fromkeys(permissions))
    if not name or len(name) > 100:
        raise RequestRefused("name: Enter 1 to 100 characters.")
    if not 1 <= days <= MAX_DAYS:
        raise RequestRefused(f"days: Must be a whole number from 1 to {MAX_DAYS}.")
    if unknown := [each for each in wanted if each.upper() not in Permission.__members__]:
        known = ", ".join(permission.name.lower() for permission in Permission)
        raise RequestRefused(f"verbs: Unknown permission {', '.join(unknown)}. Known: {known}.")
    if lacking := [each for each in wanted if not has_permission(user, Permission[each.upper()])]:
        raise RequestRefused(f"verbs: {user} does not have the permission {', '.join(lacking)}.")
    if not wanted:
        raise RequestRefused("verbs: Select at least one permission.")
    if active_tokens(user).count() >= MAX_TOKENS:
        raise RequestRefused(f"{user} has {MAX_TOKENS} tokens, the maximum. Revoke one first.")
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    patterns = [str(Scope.parse(each)) for each in scopes if each.strip()]
    token = ApiToken.objects.create(
        user=user, name=name, digest=_digest(text), hint=text[:HINT_LENGTH], verbs=wanted, scopes=patterns,
        made_by=made_by, expires=timezone.now() + timedelta(days=days),
    )  # fmt: skip
    return token, text


def create_and_record(
    request: HttpRequest, name_of_user: str, name: str, permissions: Iterable[str], scopes: Iterable[str], days: int
) -> tuple[ApiToken, str]:
    """Create a token for the caller, or for another user with the permission to manage users; write an audit entry.

    Who asks with a token needs that right too: else a token could live for ever. Raises RequestRefused,
    PermissionDenied.
    """
    user = request.user
    if is_restricted(user):
        require(request, Permission.USERS)
    if name_of_user and name_of_user != user.get_username():
        require(request, Permission.USERS)
        user = User.objects.filter(username=name_of_user, is_active=True).first()
        if user is None:
            raise RequestRefused(f"user: Active user {name_of_user!r} not found.")
    with trail.recording(request, "make token", f"user {user.get_username()}") as change:
        token, text = create_token(user, name, permissions, scopes, days, request.user.get_username())
        change.after = {"name": token.name, "verbs": token.verbs, "scopes": token.scopes, "days": days}
    return token, text


def revoke_and_record(request: HttpRequest, token: ApiToken) -> None:
    """Revoke a token and write an audit entry. Another user's requires the permission to manage users."""
    if token.user_id != request.user.pk:
        require(request, Permission.USERS)
    before = {"name": token.name, "verbs": token.verbs, "scopes": token.scopes}
    with trail.recording(request, "revoke token", f"user {token.user.get_username()}", before=before):
        revoke_token(token)


def active_tokens(user: User | None = None) -> QuerySet[ApiToken]:
    """Return the tokens of a user, or of all, that are neither revoked nor expired."""
    found = ApiToken.objects.filter(revoked=None, expires__gt=timezone.now()).select_related("user")
    return found if user is None else found.filter(user=user)


def revoke_token(token: ApiToken) -> None:
    """Revoke a token from the next request on."""
    token.revoked = timezone.now()
    token.save(update_fields=["revoked"])


def authenticate_token(text: str, address: str = "") -> User | None:
    """Return the token's user, restricted to the token's permissions; None for an invalid token."""
    if not text.startswith(PREFIX):
        return None
    token = active_tokens().filter(digest=_digest(text), user__is_active=True).first()
    if token is None:
        return None
    _record_use(token, timezone.now(), address)
    restrict(token.user, token_limit(token))
    return token.user


def token_limit(token: ApiToken) -> TokenLimit:
    """Return the limit that a token puts on its user's permissions."""
    permissions = frozenset(Permission[each.upper()] for each in token.verbs if each.upper() in Permission.__members__)
    return TokenLimit(permissions, tuple(map(Scope.parse, token.scopes)))


def _record_use(token: ApiToken, now: datetime, address: str) -> None:
    if token.used is None or now - token.used > LAST_USE_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(used=now, used_from=address[:64])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
