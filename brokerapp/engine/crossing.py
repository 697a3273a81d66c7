"""Crossing: what the consumer of a bridge to another broker takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brokerapp.network_path import PATH_HEADER, UNLIMITED, Path, read_path
from brokerapp.selectors import Selector


@dataclass(slots=True, eq=False)
class Crossing:
    """It stands where other consumers have their selector, and takes what may go on to the bridge's other end."""

    to: str  #: the broker there
    message_ttl: int  #: bridges that a message may cross
    path: Path = ()  #: of the demand: the brokers from here to the one whose consumers want it
    selector: Selector | None = None  #: theirs, where the bridge stands for one of them only

    @property
    def text(self) -> str | None:
        """The selector's."""
        return self.selector.text if self.selector is not None else None

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Whether a message with these headers, its path among them, may cross."""
        path = read_path(headers.get(PATH_HEADER, ""))
        if self.to in path or (self.message_ttl != UNLIMITED and len(path) >= self.message_ttl):
            return False
        return self.selector is None or self.selector.matches(headers)
