"""Hold the routing table in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination


class CurrentRouting:
    """The compiled definitions; queues, feeds and bindings outlive a change of them."""

    def __init__(
        self, *, definitions: Definitions, is_wanted: Callable[[Destination, Mapping[str, str]], bool]
    ) -> None:
        self._is_wanted = is_wanted
        self.table = RoutingTable(definitions, is_wanted)

    def replace(self, definitions: Definitions) -> None:
        """Route by these definitions from now on. Messages on their way keep their route."""
        known = self.table
        self.table = RoutingTable(definitions, self._is_wanted, known.queues, known.feeds, known.bindings)
