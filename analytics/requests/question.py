"""The input of a job: time range, parameters, definitions and access to the recorded events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.sql.access import DataAccess
from brokerapp.model.definitions import Definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableReader(Protocol):
    """Counts time ranges from tables, and from events where tables do not reach (analytics/tables/reader.py)."""

    def counts(self, question: RunQuestion, windows: Sequence[TimeWindow], slot: int, hourly_only: bool = False) -> Any:
        """Return the RecordedCounts of time ranges, by slots of so many seconds."""


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """Passes a request to a job. `read` returns the events of one or more time ranges.

    `count` counts the messages of time ranges by the keys of a MeasureTable and a slot, as `EventReader.counts`; None:
    Spark counts the events that `read` returns.
    """

    window: TimeWindow
    read: Callable[..., DataFrame]
    parameters: Mapping[str, str] = field(default_factory=dict)
    routing: Definitions | None = None  #: active when the run started; None: not available
    trial: WhatIfRequest | None = None  #: definitions to compare
    began_us: int | None = None  #: when recording began; None: unknown
    tables: TableReader | None = None  #: hourly and daily tables; None: everything is counted from events
    access: DataAccess | None = None  #: what the user of an SQL statement may see
    rows: int = 0  #: recorded events in the files of the time range, as far as known
    count: Callable[..., DataFrame] | None = None

    @property
    def events(self) -> DataFrame:
        """Read the events of the time range."""
        return self.read(self.window)

    @property
    def covered(self) -> TimeWindow:
        """Return the part of the time range since recording began. Rates and charts cover it."""
        since, until = self.window.since_us, self.window.until_us
        return TimeWindow(min(max(since, self.began_us or since), until - 1), until)
