"""Write one audit entry for each change, sign-in and denied action."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brokerapp.errors import BrokerError, StoreUnavailable
from console.audit.models import AuditEntry

if TYPE_CHECKING:  # its import takes longer than a verb of brokerctl
    from django.http import HttpRequest

logger = logging.getLogger(__name__)

#: Characters kept of an object's name, and of what a browser says it is.
MAX_OBJECT, MAX_AGENT = 500, 300


@dataclass(frozen=True, slots=True)
class AuditActor:
    """Identify who acts, from which address and through which interface."""

    who: str
    address: str = ""
    agent: str = ""  #: what the browser or program says it is
    via: str = AuditEntry.Via.CONSOLE
    seen_as: str = ""  #: whom they see the console as meanwhile, see `console.accounts.impersonation`

    @staticmethod
    def of(request: HttpRequest) -> AuditActor:
        """Return the actor of a request; the address is the peer's or what a proxy of SLUICE_PROXIES names."""
        user = getattr(request, "user", None)
        look = getattr(user, "look", None)
        return AuditActor(
            (look.by if look else user).get_username() if user is not None else "",
            request.META.get("REMOTE_ADDR", "") or "",
            request.META.get("HTTP_USER_AGENT", "")[:MAX_AGENT],
            getattr(request, "audited_via", AuditEntry.Via.CONSOLE),
            look.holder.description if look else "",
        )


@dataclass(slots=True)
class AuditChange:
    """Collect what the block under `recording` changes."""

    before: Any = None
    after: Any = None
    outcome: AuditEntry.Outcome = AuditEntry.Outcome.DONE  #: when the block ends without an error


@contextmanager
def recording(
    actor: HttpRequest | AuditActor, action: str, object: object, before: Any = None
) -> Iterator[AuditChange]:
    """Record the block's change as done, or as refused or failed by its exception."""
    change = AuditChange(before)
    try:
        yield change
    except Exception as error:
        is_refused = isinstance(error, BrokerError) and not isinstance(error, StoreUnavailable)
        outcome = AuditEntry.Outcome.REFUSED if is_refused else AuditEntry.Outcome.FAILED
        record(actor, action, object, outcome, str(error) or type(error).__name__, change)
        raise
    record(actor, action, object, change.outcome, change=change)


def record_denied(actor: HttpRequest | AuditActor, action: str, object: object, reason: str) -> None:
    """Write an entry for an action that was denied."""
    record(actor, action, object, AuditEntry.Outcome.DENIED, reason)


def record(
    actor: HttpRequest | AuditActor,
    action: str,
    object: object,
    outcome: AuditEntry.Outcome,
    detail: str = "",
    change: AuditChange | None = None,
) -> None:
    """Write one audit entry."""
    by, change = actor if isinstance(actor, AuditActor) else AuditActor.of(actor), change or AuditChange()
    if by.seen_as:
        detail = f"{detail} (viewing as the {by.seen_as})".lstrip()
    AuditEntry.objects.create(
        who=by.who[:150],
        address=by.address[:64],
        agent=by.agent,
        via=by.via,
        action=action,
        object=str(object)[:MAX_OBJECT],
        before=change.before,
        after=change.after,
        outcome=outcome,
        detail=detail,
    )
    # Whoever typed a command has its answer on the terminal.
    level = logging.DEBUG if by.via == AuditEntry.Via.BROKERCTL else logging.INFO
    logger.log(level, "%s from %s: %s %s: %s %s", by.who, by.address or by.via, action, object, outcome, detail)
