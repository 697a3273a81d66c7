"""Record what clients did with a real node, and archive what the node recorded of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from brokerapp.config.reader import parse_config
from brokerapp.store.client.keys import trace_key
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.tracing.decoding import decode
from tests.protocol.running_node import RunningNode

BROKER = "observed"


@contextmanager
def observed_node(store: EmbeddedStore, archive: Path, broker_xml: str = "") -> Iterator[RunningNode]:
    """A node of a broker with this configuration; when it has stopped, all that it recorded is in the archive."""
    xml = f'<broker xmlns="{_NAMESPACE}" brokerName="{BROKER}">{broker_xml}{_CONNECTOR}</broker>'
    node = RunningNode(parse_config(xml, {}), store.url)
    try:
        yield node
    finally:
        node.stop()
    with redis.Redis.from_url(store.url) as client:
        entries = client.xrange(trace_key(BROKER))
    kept = BrokerArchive(archive, BROKER)
    for number, (id, fields) in enumerate(entries, 1):
        kept.append(decode(fields[b"b"]), ArchiveCommit(offset=id.decode(), ordinal=number))


_NAMESPACE = "http://activemq.apache.org/schema/core"
_CONNECTOR = '<transportConnectors><transportConnector name="s" uri="stomp://127.0.0.1:0"/></transportConnectors>'


def now_us() -> int:
    """The clock of clients."""
    return time.time_ns() // 1000


class Analyst:
    """Asks analyses about an archive."""

    def __init__(self, spark, archive: Path, window: TimeWindow) -> None:
        self._spark, self._archive, self.window = spark, archive, window

    def events(self):
        """Those of the window, for a transform."""
        return self._reader().events(self.window)

    def _reader(self):
        from analytics.spark.event_frames import EventReader

        return EventReader(self._spark, self._archive)

    def ask(self, job, routing=None, **parameters):
        """The findings of a job, and its tables by name."""
        reader = self._reader()
        question = RunQuestion(
            self.window, reader.events, parameters, routing, began_us=self.window.since_us, count=reader.counts
        )
        found = job.run(question, lambda _title, frame: frame.toArrow())
        return found, {table.name: table.rows.to_pylist() for table in found.tables}
