"""Define what the broker needs of the store, as ports by the kind of data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from brokerapp.store import CommitBatch, CommitResult, LogState, StoredJob, StoredLogEntry, StoreLimits


class EntryReader(Protocol):
    """Reads the messages of logs."""

    async def read(self, log: str, after: int, count: int) -> list[StoredLogEntry]: ...

    async def read_by_priority(self, log: str, after: int, count: int) -> list[StoredLogEntry]: ...

    async def read_by_seq(self, log: str, numbers: Sequence[int]) -> list[StoredLogEntry]: ...

    async def existing_seqs(self, log: str, numbers: Sequence[int]) -> set[int]: ...


class LogMaintenance(Protocol):
    """Reads the state of logs, orders them by priority and removes them."""

    async def last_seqs(self, logs: Sequence[str]) -> dict[str, int]: ...

    async def used_bytes(self) -> tuple[int, dict[str, int]]: ...

    async def temp_used_bytes(self) -> int: ...

    async def depths(self, logs: Sequence[str]) -> dict[str, int]: ...

    async def attributes_of(self, logs: Sequence[str]) -> list[dict[str, Any]]: ...

    async def recover_logs(self, logs: Sequence[str]) -> list[LogState]: ...

    async def index_priority(self, log: str, session: str, after: int) -> int: ...

    async def drop(self, log: str, session: str, *, discarded: bool) -> int: ...


class ScheduleReader(Protocol):
    """Reads scheduled jobs, and entries that have expired."""

    async def logs_with_expired(self, now_ms: int) -> list[str]: ...

    async def read_expired(self, log: str, now_ms: int, skip: int, count: int) -> list[StoredLogEntry]: ...

    async def read_jobs(self, start_ms: int, end_ms: int, skip: int, count: int) -> list[StoredJob]: ...

    async def next_due_ms(self) -> int | None: ...


class PreparedBranchReader(Protocol):
    """Reads branches of transactions that are prepared."""

    async def summaries(self) -> dict[str, bytes]: ...

    async def read(self, id: str) -> bytes | None: ...


class StatisticsReader(Protocol):
    """Reads the statistics of destinations."""

    async def read(self, names: Sequence[str]) -> list[str]: ...


class ClusterRecordWriter(Protocol):
    """Saves changes of the cluster's record."""

    async def save(
        self, session: str, id: str, version: int, changed: Mapping[str, str], *, anew: bool = False
    ) -> None: ...


class CommitStore(Protocol):
    """Commits batches of writes; its parts answer reads between two batches."""

    @property
    def entries(self) -> EntryReader: ...

    @property
    def logs(self) -> LogMaintenance: ...

    @property
    def schedules(self) -> ScheduleReader: ...

    @property
    def branches(self) -> PreparedBranchReader: ...

    @property
    def stats(self) -> StatisticsReader: ...

    @property
    def cluster_record(self) -> ClusterRecordWriter: ...

    @property
    def payload_base(self) -> int: ...

    async def commit(self, session: str, batch: CommitBatch, limits: StoreLimits) -> CommitResult: ...

    async def last_batch(self, session: str) -> int: ...


#: Called with a page of a log.
ReadCallback = Callable[[list[StoredLogEntry]], None]
#: A question to the store.
Question = Callable[[CommitStore], Awaitable[Any]]
