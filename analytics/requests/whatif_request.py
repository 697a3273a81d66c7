"""The part of a request that a what-if analysis needs: active and proposed definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import Definitions


@dataclass(frozen=True, slots=True)
class WhatIfRequest:
    """Holds two sets of definitions and the routing context at the time of the request."""

    current: Definitions
    proposed: Definitions
    circumstances: RoutingContext

    def to_json(self) -> dict[str, Any]:
        """Return this request as values that JSON can hold."""
        return {
            "current": to_json(self.current),
            "proposed": to_json(self.proposed),
            "circumstances": self.circumstances.to_json(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> WhatIfRequest:
        """Read what to_json returns. Raises DefinitionRefused."""
        circumstances = RoutingContext.from_json(data["circumstances"])
        return WhatIfRequest(from_json(data["current"]), from_json(data["proposed"]), circumstances)
