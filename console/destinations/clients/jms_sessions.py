"""Sessions of a JMS connection, by the ids that its client gives producers and consumers. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import ConsumerStats

#: The session in which the client library itself consumes, such as advisories of temporary destinations.
LIBRARY_SESSION = "-1"


@dataclass(frozen=True, slots=True)
class JmsSessions:
    """Producers and consumers of a JMS connection by session, those of the client library last."""

    consumers: list[tuple[str, ConsumerStats]]  #: number of the session ("": of the library), and consumer
    producers: list[tuple[str, list[Destination]]]  #: number of the session ("": of any), and destinations

    @staticmethod
    def of(
        producers: Iterable[Mapping[str, Any]], sent_to: Iterable[str], consumers: Iterable[ConsumerStats]
    ) -> JmsSessions:
        """Return the sessions of these producers (ProducerStats) and consumers.

        `sent_to`: destinations of messages; those of no producer were named by the messages themselves.
        """
        opened = sorted((_session(each["id"]), sorted(each["destinations"])) for each in producers)
        named = {destination for _, destinations in opened for destination in destinations}
        found = [(session, list(map(Destination.parse, destinations))) for session, destinations in opened]
        found += [("", [Destination.parse(each)]) for each in sent_to if each not in named]
        by_session = sorted(((_session(each.id), each) for each in consumers), key=lambda pair: _order(pair[0]))
        return JmsSessions(by_session, found)

    @property
    def count(self) -> int:
        """Return the number of sessions that have producers or consumers."""
        return len({session for session, _ in (*self.consumers, *self.producers) if session})


def _session(id: str) -> str:
    """Return the second last part of an id `CONNECTION:SESSION:NUMBER`; "" for the session of the library."""
    parts = id.rsplit(":", 2)
    return parts[1] if len(parts) == 3 and parts[1] != LIBRARY_SESSION else ""


def _order(session: str) -> tuple[bool, int, str]:
    return not session, len(session), session
