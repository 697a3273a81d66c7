"""Question: what a job is asked, and the recorded traffic it may read to answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from brokerapp.model.definitions import Definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """One request, ready to be answered. `read` gives the events of some stretches of time."""

    window: TimeWindow
    read: Callable[..., DataFrame]
    parameters: Mapping[str, str] = field(default_factory=dict)
    routing: Definitions | None = None  #: in force when it was asked; None when nobody knew
    trial: WhatIfRequest | None = None  #: definitions to be judged
    began_us: int | None = None  #: when recording began; None when nobody knows

    @property
    def events(self) -> DataFrame:
        """The events of the window."""
        return self.read(self.window)

    @property
    def covered(self) -> TimeWindow:
        """The part of the window in which anything was recorded: rates are over it, charts draw nothing before it."""
        since, until = self.window.since_us, self.window.until_us
        return TimeWindow(min(max(since, self.began_us or since), until - 1), until)
