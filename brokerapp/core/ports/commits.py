"""Port of the group commit: what the parts ask of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from brokerapp.core.ports.commit_store import Question, ReadCallback
from brokerapp.store import PendingWrite, SettledEntry, StoreLimits


class WriteQueue(Protocol):
    """Takes writes and questions to the store, in order; none of its methods waits."""

    def submit(self, unit: PendingWrite) -> None: ...

    def cancel(self, wanted: Callable[[PendingWrite], bool]) -> list[PendingWrite]: ...

    def remove_settled(self, entries: Iterable[SettledEntry]) -> None: ...

    def create(self, log: str, attributes: str) -> None: ...

    def remove(self, log: str) -> None: ...

    def discard_log(self, log: str, then: Callable[[], None] = ...) -> None: ...

    def set_recovery_mark(self, log: str, mark: str) -> None: ...

    def record_redelivery(self, entry: SettledEntry, deliveries: int) -> None: ...

    def read(self, log: str, after: int, count: int, callback: ReadCallback) -> None: ...

    def read_with(self, question: Question, callback: Callable[[Any], None]) -> None: ...


class Commits(WriteQueue, Protocol):
    """Writes to the store, and tells what is on its way there and how much is held."""

    async def barrier(self) -> None: ...

    def keep_record(
        self, id: str, version: int, changed: Mapping[str, str], anew: bool, then: Callable[[], None]
    ) -> None: ...

    def clear(self, log: str, then: Callable[[], None] = ...) -> None: ...

    def prioritize(self, log: str, after: int, callback: Callable[[int], None]) -> None: ...

    @property
    def busy(self) -> bool: ...

    def has_pending_for(self, log: str) -> bool: ...

    limits: StoreLimits

    used: int

    temp: int

    held: dict[str, int]

    given: int

    before: Mapping[str, int]
