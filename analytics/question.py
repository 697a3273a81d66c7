"""Question: what a job is asked, and the recorded traffic it may read to answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.request import Window
from analytics.whatif.trial import Trial
from brokerapp.definitions import Definitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Question:
    """One request, ready to be answered. `read` gives the events of some stretches of time."""

    window: Window
    read: Callable[..., DataFrame]
    parameters: Mapping[str, str] = field(default_factory=dict)
    routing: Definitions | None = None  #: in force when it was asked; None when nobody knew
    trial: Trial | None = None  #: definitions to be judged

    @property
    def events(self) -> DataFrame:
        """The events of the window."""
        return self.read(self.window)
