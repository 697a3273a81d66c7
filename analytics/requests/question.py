"""The input of a job: time range, parameters, definitions and access to the recorded events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from analytics.sql.access import DataAccess
from brokerapp.model.definitions import Definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """Passes a request to a job. `read` returns the events of one or more time ranges."""

    window: TimeWindow
    read: Callable[..., DataFrame]
    parameters: Mapping[str, str] = field(default_factory=dict)
    routing: Definitions | None = None  #: active when the run started; None: not available
    trial: WhatIfRequest | None = None  #: definitions to compare
    began_us: int | None = None  #: when recording began; None: unknown
    access: DataAccess | None = None  #: what the user of an SQL statement may see
    rows: int = 0  #: recorded events in the files of the time range, as far as known

    @property
    def events(self) -> DataFrame:
        """Read the events of the time range."""
        return self.read(self.window)

    @property
    def covered(self) -> TimeWindow:
        """Return the part of the time range since recording began. Rates and charts cover it."""
        since, until = self.window.since_us, self.window.until_us
        return TimeWindow(min(max(since, self.began_us or since), until - 1), until)
