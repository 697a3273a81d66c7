"""Decide which messages the consumer of a bridge may take, and explain refusals. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.broker_path import UNLIMITED, Path
from brokerapp.selectors import Selector

#: Whether a selector takes the message that is asked about.
SelectorTest = Callable[[Selector], bool]


class BridgeDecision(StrEnum):
    """Whether a message may cross a bridge, or what keeps it here."""

    CROSSES = "forwarded"
    CAME_FROM_THERE = "it was received from that broker"
    CONSUMED_HERE = "it was received from that broker and has local consumers"
    TOO_EARLY = "it was received from that broker; replayDelay has not passed yet"
    TOO_FAR = "it has passed the maximum number of bridges (messageTTL)"
    UNWANTED = "it does not match the selector of the remote consumer"
    TOO_FAST = "the rate limit is reached (rateLimit)"


def _came_from_there() -> BridgeDecision:
    return BridgeDecision.CAME_FROM_THERE


@dataclass(slots=True)
class BridgeFilterCounts:
    """Number of messages that were not given to a bridge, and of duplicates that it delivered."""

    too_far: int = 0  #: messages of topics that were not given to it, having crossed as many bridges as they may
    repeated: int = 0  #: copies that it handed over again


@dataclass(slots=True)
class BridgeRate:
    """Number of messages forwarded in the current period of a rate limit."""

    until_ms: int = 0
    crossed: int = 0


@dataclass(slots=True, eq=False)
class BridgeEligibility:
    """It stands where other consumers have their selector, and takes what may go on to the bridge's other end."""

    to: str  #: the broker there
    message_ttl: int  #: bridges that a message may cross
    path: Path = ()  #: of the demand: the brokers from here to the one whose consumers want it
    selector: Selector | None = None  #: theirs, where the bridge stands for one of them only
    tally: BridgeFilterCounts = field(default_factory=BridgeFilterCounts)  #: of all consumers of the bridge
    consumers: frozenset[str] = frozenset()  #: ids of those it is for, wherever they are
    yields: bool = False  #: it stands aside while another bridge serves one of them
    excepted: tuple[str, ...] = ()  #: names and patterns that it takes nothing from, whatever pattern it consumes
    rates: dict[str, BridgeRate] = field(default_factory=dict)  #: by the log that has a limit

    @property
    def text(self) -> str | None:
        """Return the text of the selector, or None."""
        return self.selector.text if self.selector is not None else None

    def excludes(self, name: str) -> bool:
        """Whether nothing of a destination may cross, being excluded from the pattern that is consumed."""
        return any(matches(each, name) for each in self.excepted)

    def goes_on(self, former: BridgeEligibility) -> bool:
        """Whether this is a former one, perhaps for other consumers, at other places: a bridge tells of them so."""
        return (self.to, self.message_ttl, self.text) == (former.to, former.message_ttl, former.text)

    def verdict(
        self, path: Path, asks: SelectorTest, returning: Callable[[], BridgeDecision] = _came_from_there
    ) -> BridgeDecision:
        """Decide about a message with this path; `returning` decides about one that came from the other broker."""
        if self.to in path:
            if (found := returning()) is not BridgeDecision.CROSSES:
                return found
        elif self.message_ttl != UNLIMITED and len(path) >= self.message_ttl:
            return BridgeDecision.TOO_FAR
        return BridgeDecision.CROSSES if self.selector is None or asks(self.selector) else BridgeDecision.UNWANTED
