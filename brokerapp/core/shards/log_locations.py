"""Know in which shard each log of a broker is, and choose one for those that are new."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.model.destination import TEMPORARY_LOGS

#: The attribute of a log in the store that names its shard; without one it is in shard 0.
SHARD = "shard"


class LogLocations:
    """Where the logs are. `place` returns where one that is not there yet belongs, `family_of` the family of a log."""

    def __init__(self, place: Callable[[str], int], family_of: Callable[[str], str] = str) -> None:
        self._place, self.family_of = place, family_of
        self.known: dict[str, int] = {}  #: of the logs that are there, the shards

    def shard_of(self, log: str) -> int:
        """Return the shard of a log, or where it would be. Those of temporary destinations are in shard 0."""
        found = self.known.get(log)
        if found is None:
            found = 0 if log.startswith(TEMPORARY_LOGS) else self._place(log)
        return found

    def locate(self, log: str, attributes: Mapping[str, Any]) -> None:
        """Take from the attributes of a log in the store where it is."""
        if not log.startswith(TEMPORARY_LOGS):
            self.known[log] = attributes.get(SHARD, 0)

    def of_family(self, family: str) -> dict[str, int]:
        """Return where the logs of a family are."""
        return {log: shard for log, shard in self.known.items() if self.family_of(log) == family}

    def with_shard(self, log: str, attributes: str) -> str:
        """Return a log's attributes with its shard."""
        shard = self.shard_of(log)
        self.locate(log, {SHARD: shard})
        return json.dumps({**json.loads(attributes), SHARD: shard}) if shard else attributes
