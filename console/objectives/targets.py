"""Describe what objectives demand, and what was measured of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.model.service_level import FAST, SLOW, Outcomes, budget_left, is_met
from analytics.model.wording import MINUS
from brokerapp.model.destination import Destination, DestinationKind
from console.ui.formatting.number_format import format_duration


@dataclass(frozen=True, slots=True)
class Target:
    """What an objective demands of queues, or of durable subscriptions.

    `pattern` is that of queues, or of topics: all topics of a subscription match it. `subscription` limits these to one
    name, `client-id:name`; "": all.
    """

    pattern: str
    percent: float
    seconds: int
    days: int
    kind: DestinationKind = DestinationKind.QUEUE
    subscription: str = ""

    @property
    def of_subscriptions(self) -> bool:
        """Return whether it is about durable subscriptions."""
        return self.kind is DestinationKind.SUBSCRIPTION

    @property
    def destination(self) -> Destination:
        """Return the pattern of queues or topics as a destination."""
        return Destination(DestinationKind.TOPIC if self.of_subscriptions else DestinationKind.QUEUE, self.pattern)

    @property
    def _which(self) -> str:
        if not self.of_subscriptions:
            return f"of {self.pattern}"
        if self.subscription:
            return f"of durable subscription {self.subscription} to {self.pattern}"
        return f"of durable subscriptions to {self.pattern}"

    def __str__(self) -> str:
        period = "24 hours" if self.days == 1 else f"{self.days} days"
        within = format_duration(self.seconds)
        return f"{self.percent:g}% of messages {self._which} acknowledged within {within}, over {period}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of an objective: messages of the period, and burn rates by the length of their window."""

    target: Target
    counted: int  #: queues or subscriptions
    left_out: int  #: those beyond the limit
    outcomes: Outcomes
    burn_rates: Mapping[int, float]

    @property
    def attainment(self) -> float | None:
        """Return the share of messages in time; None without messages."""
        return self.outcomes.attainment

    @property
    def budget_left(self) -> float | None:
        """Return the share of the error budget that is left, below 0 if it was exceeded; None without messages."""
        return budget_left(self.outcomes, self.target.percent) if self.outcomes.total else None

    @property
    def is_met(self) -> bool | None:
        """Return whether the share of messages in time is as high as demanded; None without messages."""
        return is_met(self.outcomes, self.target.percent)

    @property
    def attainment_text(self) -> str:
        """Return the share of messages in time as text, never rounded up to what is demanded."""
        total = self.outcomes.total
        return f"{self.outcomes.within * 10_000 // total / 100:.2f}%" if total else ""

    @property
    def budget_text(self) -> str:
        """Return the share of the error budget that is left as text."""
        return "" if self.budget_left is None else f"{self.budget_left * 100:,.0f}%".replace("-", MINUS)

    @property
    def fast_burn(self) -> float:
        """Return the burn rate of both windows of FAST."""
        return min(self.burn_rates[each] for each in FAST)

    @property
    def slow_burn(self) -> float:
        """Return the burn rate of both windows of SLOW."""
        return min(self.burn_rates[each] for each in SLOW)
