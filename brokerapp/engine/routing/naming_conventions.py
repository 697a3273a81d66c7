"""Define how the clients of a connector name destinations, by its options. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.engine.routing.bindings import RoutingType
from brokerapp.engine.routing.consumer_mappings import ConsumerMappings
from brokerapp.model.destination import SEPARATOR


@dataclass(frozen=True, slots=True)
class NamingConventions:
    """Prefixes that say of a name what it is, and which queues of consumers belong to topics."""

    prefixes: tuple[tuple[str, RoutingType], ...] = ()  #: tried in this order
    consumer_queues: ConsumerMappings | None = None
    path_separator: str = ""  #: what clients write between the elements of names; "": what the broker writes

    @property
    def are_plain(self) -> bool:
        """Whether names mean here what they mean everywhere."""
        return not self.prefixes and self.consumer_queues is None and not self.path_separator

    def without_prefix(self, name: str) -> tuple[str, RoutingType | None]:
        """The name without the prefix it has, and what that says; None where it has none."""
        for prefix, routing in self.prefixes:
            if name.startswith(prefix):
                return name[len(prefix) :], routing
        return name, None

    def with_separators(self, name: str) -> str:
        """The name with the broker's separator in place of the clients', and without empty elements."""
        if not self.path_separator:
            return name
        return SEPARATOR.join(filter(None, map(str.strip, name.split(self.path_separator))))


PLAIN = NamingConventions()
