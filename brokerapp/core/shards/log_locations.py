"""Know in which shard each log of a broker is, and choose one for those that are new."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from brokerapp.model.destination import TEMPORARY_LOGS

#: The attribute of a log in the store that names its shard; without one it is in shard 0.
SHARD = "shard"


class LogFamilies(Protocol):
    """Knows the families of logs, and where new ones belong."""

    def note(self, log: str, attributes: Mapping[str, Any]) -> None: ...

    def forget(self, log: str) -> bool: ...

    def family_of(self, log: str) -> str: ...

    def place(self, log: str) -> int: ...


class LogLocations:
    """Where the logs are."""

    def __init__(self, families: LogFamilies) -> None:
        self._families, self.family_of = families, families.family_of
        self.known: dict[str, int] = {}  #: of the logs that are there, the shards

    def shard_of(self, log: str) -> int:
        """Return the shard of a log, or where it would be. Those of temporary destinations are in shard 0."""
        found = self.known.get(log)
        if found is None:
            found = 0 if log.startswith(TEMPORARY_LOGS) else self._families.place(log)
        return found

    def locate(self, log: str, attributes: Mapping[str, Any]) -> None:
        """Take from the attributes of a log in the store where it is."""
        if not log.startswith(TEMPORARY_LOGS):
            self.known[log] = attributes.get(SHARD, 0)
            self._families.note(log, attributes)

    def move(self, family: str, source: int, target: int) -> None:
        """Know that the logs of a family that were in one shard are in another one now."""
        for log, shard in self.of_family(family).items():
            if shard == source:
                self.known[log] = target

    def forget(self, log: str) -> None:
        """Forget a log that is removed, where its name alone says where it was."""
        if self._families.forget(log):
            self.known.pop(log, None)

    def of_family(self, family: str) -> dict[str, int]:
        """Return where the logs of a family are."""
        return {log: shard for log, shard in self.known.items() if self.family_of(log) == family}

    def with_shard(self, log: str, attributes: str) -> str:
        """Return the attributes of a log, which is there from now on, with its shard."""
        described = json.loads(attributes)
        self._families.note(log, described)
        shard = self.shard_of(log)
        self.locate(log, {**described, SHARD: shard})
        return json.dumps({**described, SHARD: shard}) if shard else attributes
