"""Trial: definitions that are only proposed, to be judged beside those in force; part of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions


@dataclass(frozen=True, slots=True)
class WhatIfRequest:
    """Two sets of definitions, and what else ways depended on when it was asked for."""

    current: Definitions
    proposed: Definitions
    circumstances: RoutingContext

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "current": to_json(self.current),
            "proposed": to_json(self.proposed),
            "circumstances": self.circumstances.to_json(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> WhatIfRequest:
        """The inverse of to_json; raises DefinitionRefused."""
        circumstances = RoutingContext.from_json(data["circumstances"])
        return WhatIfRequest(from_json(data["current"]), from_json(data["proposed"]), circumstances)
