"""Reads pages of a log for operations that must act at the moment the store answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from brokerapp.core.ports import WriteQueue
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.errors import StoreUnavailable
from brokerapp.store import StoredLogEntry

T = TypeVar("T")


async def apply_to_page(
    commits: WriteQueue,
    log: MessageLog,
    after: int,
    count: int,
    apply: Callable[[list[StoredLogEntry]], T],
    *,
    is_removal: bool = True,
) -> tuple[list[StoredLogEntry], T]:
    """Read a page of a log and call `apply` with it at once; return the page and its result.

    Later, consumers may hold other messages. A page from which messages are to be removed is read again if the log
    was loaded anew meanwhile, because some of them may have been settled. What `apply` raises is raised.
    """
    while True:
        window = log.generation
        answer: asyncio.Future[tuple[list[StoredLogEntry], T] | None] = asyncio.get_running_loop().create_future()

        def read(found: list[StoredLogEntry], window: int = window, answer: asyncio.Future[Any] = answer) -> None:
            if is_removal and window != log.generation:
                answer.set_result(None)
                return
            try:
                answer.set_result((found, apply(found)))
            except Exception as error:  # the reader serves others, too
                answer.set_exception(error)

        commits.read(log.name, after, count, read)
        if (page := await answer) is not None:
            return page


def require_local(log: MessageLog) -> None:
    """Raise StoreUnavailable when another node owns the log: only the owner knows what consumers hold."""
    if log.is_remote:
        raise StoreUnavailable(f"{log.destination} has just moved to another node: try again")
