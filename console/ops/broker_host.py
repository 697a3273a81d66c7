"""Host a broker node in the web process (SLUICE_HOST_NODE=1), with Django's users as broker users."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import check_password, make_password
from django.db import close_old_connections

from brokerapp.engine.policy.authorization import Principal
from brokerapp.errors import AuthenticationFailed, BrokerError, ConfigurationRefused, StartRefused
from console.access.permission_version import local_changes
from console.access.permissions import grants_of
from console.accounts.rate_limit import RateLimit
from console.broker.gateway import close_gateway
from console.broker.live.run_notices import close_notices
from console.broker.mirror import close_mirror, mirror
from console.metrics.sampling.sampler import close_sampler, sampler
from console.ops.preload import load_pages, load_results_soon
from console.upgrades.start import check_installation

logger = logging.getLogger(__name__)

Authenticate = Callable[[str, str], Awaitable[Principal | None]]


async def lifespan(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
    """Run ASGI's lifespan: start the hosted node with the process, and stop it with the process."""
    node = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await sync_to_async(check_installation)(settings.SLUICE)
            except BrokerError as refused:
                await send(_start_failure(scope, refused))
                return
            try:
                node = await _start_node() if os.environ.get("SLUICE_HOST_NODE") == "1" else None
            except Exception as error:  # top of the process: whatever stops the node must stop the start, and say why
                if not isinstance(error, BrokerError):  # what those say is enough, as when the store is stopped
                    logger.exception("the broker node did not start")
                await send(_start_failure(scope, error))
                return
            # From now on, not from the first visitor on: the charts of the first page have a past.
            await sync_to_async(mirror, thread_sensitive=False)()
            await sync_to_async(sampler, thread_sensitive=False)()
            await sync_to_async(load_pages, thread_sensitive=False)()
            if settings.SLUICE.warms_up:
                load_results_soon()
            await send({"type": "lifespan.startup.complete"})
        else:
            if node is not None:
                await node.stop()
            await sync_to_async(close_sampler, thread_sensitive=False)()
            close_notices()
            close_mirror()
            close_gateway()
            await send({"type": "lifespan.shutdown.complete"})
            return


def _start_failure(scope: dict[str, Any], error: Exception) -> dict[str, str]:
    """Return the server's message that the start failed, which it logs; a refused configuration ends the process."""
    if isinstance(error, ConfigurationRefused) and not isinstance(error, StartRefused):
        scope.setdefault("state", {})[error.code] = str(error)  # web_server.py reads it
    return {"type": "lifespan.startup.failed", "message": str(error)}


async def _start_node() -> Any:
    from brokerapp.runtime import bootstrap  # a console without a node needs none of it

    node = await bootstrap.start_node(settings.SLUICE, Authenticator(roles=bootstrap.PRODUCING_AND_CONSUMING))
    logger.info("the broker node listens on %s", ", ".join(node.addresses))
    return node


class Authenticator:
    """Check login and passcode against active users, and return the broker's principal.

    A password hash takes long on purpose. Answers are remembered for a short while, under a keyed digest, so that a
    storm of reconnecting clients costs one hash a user, but no longer than until rights are changed in this process.
    Whoever tries passwords for a name from one address gets GUESSES answers at once and then one in SLOWLY seconds;
    others of that name, and from there with a password that is remembered, do not notice.

    `roles`: of these a user needs one, as the broker lets all others do nothing; empty: none is needed.
    """

    #: Seconds an answer is remembered: a yes, and a no.
    YES, NO = 60.0, 5.0
    MAX_ANSWERS = 10_000
    MAX_GUESSES, SLOWLY = 20, 10.0

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, roles: frozenset[str] = frozenset()) -> None:
        self._clock, self._roles = clock, roles
        self._key = os.urandom(32)
        self._answers: dict[bytes, tuple[float, Principal | None]] = {}
        self._changes = local_changes()
        self._guesses = RateLimit(1 / self.SLOWLY, self.MAX_GUESSES, clock)

    async def __call__(self, login: str | None, passcode: str | None, address: str = "") -> Principal | None:
        """Return the principal, or None for a wrong login. Raises AuthenticationFailed for a user without a role."""
        principal = await self._authenticate(login, passcode, address)
        if principal is not None and self._roles and self._roles.isdisjoint(principal.groups):
            raise AuthenticationFailed(f"user {login!r} needs the role client to connect")
        return principal

    async def _authenticate(self, login: str | None, passcode: str | None, address: str) -> Principal | None:
        if login is None or passcode is None:
            return None
        if self._changes != local_changes():  # somebody's password, account or role is another one
            self._changes = local_changes()
            self._answers.clear()
        digest = hmac.digest(self._key, f"{len(login)}:{login}{passcode}".encode(), hashlib.sha256)
        until, principal = self._answers.get(digest, (0.0, None))
        if self._clock() < until:
            return principal
        if self._guesses.acquire(f"{login}\n{address}"):
            logger.warning("too many passwords tried for %r from %s", login, address)
            return None
        principal = await sync_to_async(self._check, thread_sensitive=False)(login, passcode)
        if len(self._answers) >= self.MAX_ANSWERS:
            self._answers.clear()
        self._answers[digest] = (self._clock() + (self.YES if principal else self.NO), principal)
        return principal

    def _check(self, login: str, passcode: str) -> Principal | None:
        try:
            user = get_user_model().objects.filter(username=login, is_active=True).first()
            if user is None:
                make_password(passcode)  # an unknown name must take as long as a wrong password
                return None
            if not check_password(passcode, user.password):
                return None
            # Over STOMP a right is for everything or not at all: a role with scopes gives none.
            return Principal(login, frozenset(grant.role for grant in grants_of(user) if not grant.scopes))
        finally:
            close_old_connections()
