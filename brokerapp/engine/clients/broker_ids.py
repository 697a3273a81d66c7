"""Know other brokers by the ids that they have in OpenWire. No I/O.

An ActiveMQ has another id each time it starts, and messages and demand name the brokers they passed by these. Here
brokers have their names, by which a message is recognized also when its broker was started again in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.model.broker_path import Path

#: Ids that are remembered: those of brokers that were connected last, each time they started.
MAX_KNOWN = 1_000


class BrokerIds:
    """Translates the ids of brokers into their names and back. An unknown one, of either, stays as it is."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # by id, the one that was learned last at the end
        self._ids: dict[str, str] = {}  # by name: the last one

    def learn(self, id: str, name: str) -> None:
        """Note that the broker of this name has this id now."""
        self._forget(id)
        self._names[id], self._ids[name] = name, id
        if len(self._names) > MAX_KNOWN:
            self._forget(next(iter(self._names)))

    def _forget(self, id: str) -> None:
        name = self._names.pop(id, None)
        if name is not None and self._ids.get(name) == id:
            del self._ids[name]

    def names_of(self, ids: Iterable[str]) -> Path:
        """Return the path of names for one of ids."""
        return tuple([self._names.get(each, each) for each in ids])

    def ids_of(self, path: Iterable[str]) -> tuple[str, ...]:
        """Return the path of ids for one of names."""
        return tuple([self._ids.get(each, each) for each in path])
