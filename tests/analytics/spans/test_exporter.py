"""Test that every recorded event is exported once, whatever happens to the exporter, the archiver and the receiver."""

import fcntl
import os
import subprocess
import sys
import time

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from receivers import MemoryReceiver, otlp_server
from recorded_traffic import BROKER, message, send, wait_until

from analytics.archive.archiver import Archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from analytics.spans import exporter
from analytics.spans.event_source import EventSource
from analytics.spans.exporter import SpanExport
from analytics.spans.otlp_delivery import Delivery, OtlpDelivery
from analytics.spans.progress import read_progress, spans_folder
from analytics.spans.settings import SpanSettings
from brokerapp.config.reader import parse_config
from brokerapp.store.client.keys import trace_key
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DISPATCH, FORWARD
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode

QUEUE = "queue://orders"
SETTINGS = SpanSettings(ALWAYS_ON, Resource.create({"service.name": "sluice"}))
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PUBLISH, RECEIVE, SETTLE = "publish orders", "receive orders", "ack orders"


def record(store, *numbers):
    """Messages of which each was sent, dispatched and acknowledged, one batch for each of them."""
    for number in numbers:
        recorder, now = TraceRecorder(BROKER), time.time_ns() // 1000
        made = message(number, now)
        recorder.record_enqueue(now, [made], QUEUE)
        recorder.record(FORWARD, now + 1, [made], [QUEUE], QUEUE)
        recorder.record(DISPATCH, now + 2, [made], [QUEUE], QUEUE, "c")
        recorder.record(ACK, now + 3, [made], [QUEUE], QUEUE, "c")
        send(store, recorder)


@pytest.fixture
def archive(tmp_path):
    return BrokerArchive(tmp_path / "archive", BROKER)


@pytest.fixture
def stream(store_url, store):
    found = TraceStream(store_url, BROKER)
    yield found
    found.close()


@pytest.fixture
def begin(stream, archive, tmp_path):
    """A function that begins an export, as a process does when it starts."""

    def start(receiver, **limits) -> SpanExport:
        waits = []

        def wait(seconds):
            waits.append(seconds)
            assert len(waits) < 10, "it waits for ever"

        return SpanExport(EventSource(stream, archive, **limits), SETTINGS, receiver, tmp_path / "spans", BROKER, wait)

    return start


@pytest.fixture
def archiving(stream, archive):
    """A function that moves to the archive what the stream holds, and trims it."""

    def move():
        archiver = Archiver(stream, archive, lambda _: None)
        while not archiver.flush():
            pass
        archiver.close()

    return move


def drain(export):
    while not export.step():
        pass


def exported(receiver):
    """Name and message of each span."""
    ids = [each.attributes["messaging.message.id"] for each in receiver.spans]
    return sorted((each.name, int(id.rpartition(":")[2])) for each, id in zip(receiver.spans, ids, strict=True))


def three_spans_of(*numbers):
    return sorted((name, number) for name in (PUBLISH, RECEIVE, SETTLE) for number in numbers)


def test_the_first_export_begins_with_what_is_recorded_from_then_on(store, begin):
    record(store, 1, 2)
    receiver = MemoryReceiver()
    export = begin(receiver)
    record(store, 3)
    drain(export)
    assert exported(receiver) == three_spans_of(3)
    assert (export.progress.exported, export.progress.lag_seconds, export.progress.lost_batches) == (3, 0, 0)


def test_nothing_is_exported_twice_or_lost_across_restarts_while_the_archiver_trims(store, begin, archiving):
    receiver = MemoryReceiver()
    drain(begin(receiver))
    for number in range(6):
        record(store, 2 * number)
        if number % 2:
            archiving()
        export = begin(receiver)
        record(store, 2 * number + 1)
        drain(export)
        if number % 3:
            export.close()  # else it was killed
    assert exported(receiver) == three_spans_of(*range(12))
    assert (export.progress.exported, export.progress.lost_batches, export.progress.late_events) == (36, 0, 0)


def test_what_was_recorded_while_the_exporter_did_not_run_comes_from_the_archive(store, begin, archiving):
    receiver = MemoryReceiver()
    drain(begin(receiver))
    record(store, *range(20))
    archiving()
    record(store, *range(20, 25))
    archiving()
    record(store, 25)
    export = begin(receiver)
    drain(export)
    assert exported(receiver) == three_spans_of(*range(26))
    assert export.progress.lost_batches == 0


def test_what_is_older_than_the_limit_is_dropped_and_counted(store, begin, archiving):
    receiver = MemoryReceiver()
    drain(begin(receiver))
    record(store, 1)
    archiving()
    record(store, 2)
    archiving()
    time.sleep(0.01)
    export = begin(receiver, max_lag_seconds=0)
    drain(export)
    assert receiver.spans == ()
    assert export.progress.late_events == 8  # four of each message, wherever they are


def test_batches_that_are_gone_before_they_were_exported_or_archived_are_counted(store, begin):
    receiver = MemoryReceiver()
    record(store, 1)
    drain(begin(receiver))
    record(store, 2, 3, 4, 5)
    store.xtrim(trace_key(BROKER), maxlen=1, approximate=False)
    export = begin(receiver)
    drain(export)
    assert exported(receiver) == three_spans_of(5)
    assert export.progress.lost_batches == 3


def test_an_emptied_store_is_read_from_its_beginning(store, begin):
    receiver = MemoryReceiver()
    record(store, 1, 2, 3)
    export = begin(receiver)
    drain(export)
    store.flushall()
    record(store, 4)
    drain(export)
    assert exported(receiver) == three_spans_of(4)


def test_a_batch_that_is_none_does_not_stop_those_behind_it(store, begin):
    receiver = MemoryReceiver()
    export = begin(receiver)
    store.xadd(trace_key(BROKER), {"b": b"nonsense", "n": 1})
    record(store, 1)
    drain(export)
    assert exported(receiver) == three_spans_of(1)


def test_while_the_receiver_is_away_the_exporter_waits_and_then_sends_each_span_once(store, begin):
    receiver = MemoryReceiver(Delivery.FAILED, Delivery.FAILED)
    export = begin(receiver)
    record(store, 1, 2)
    drain(export)
    assert (receiver.requests, exported(receiver)) == (3, three_spans_of(1, 2))
    assert export.progress.refused == 0


def test_what_was_counted_before_the_receiver_was_away_stays_counted(store, begin):
    export = begin(MemoryReceiver(Delivery.FAILED, Delivery.FAILED))
    recorder, now = TraceRecorder(BROKER), time.time_ns() // 1000
    recorder.record(ACK, now, [message(1, now)], [QUEUE], QUEUE, "c")  # without an enqueue its context is not known
    send(store, recorder)
    drain(export)
    assert (export.progress.exported, export.progress.unknown_contexts) == (1, 1)


def test_when_it_is_to_stop_while_the_receiver_is_away_nothing_is_lost(store, begin):
    away = MemoryReceiver(*[Delivery.FAILED] * 5)
    export = begin(away)
    record(store, 1)
    export.is_stopping = lambda: True
    assert not export.step()
    assert export.progress.exported == 0
    export.close()
    receiver = MemoryReceiver()
    drain(begin(receiver))
    assert exported(receiver) == three_spans_of(1)


def test_what_the_receiver_refuses_is_dropped_and_counted(store, begin):
    receiver = MemoryReceiver(Delivery.REFUSED)
    export = begin(receiver)
    record(store, 1)
    drain(export)
    record(store, 2)
    drain(export)
    assert exported(receiver) == three_spans_of(2)
    assert (export.progress.refused, export.progress.exported) == (3, 3)


def test_progress_is_read_as_it_was_written(store, begin, tmp_path):
    record(store, 1)
    export = begin(MemoryReceiver())
    record(store, 2)
    drain(export)
    assert read_progress(tmp_path / "spans") == export.progress
    assert read_progress(tmp_path / "nowhere") is None


# -- OTLP over HTTP


@pytest.fixture
def server(monkeypatch):
    with otlp_server() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
        yield found


def test_requests_are_otlp_with_the_headers_of_the_environment(store, begin, server):
    receiver = OtlpDelivery()
    export = begin(receiver)
    record(store, 1)
    drain(export)
    receiver.close()
    assert server.paths == ["/v1/traces"]
    [headers] = server.headers
    assert (headers["authorization"], headers["content-type"]) == ("Bearer abc", "application/x-protobuf")
    publish, receive, ack = server.spans
    assert [each.name for each in (publish, receive, ack)] == [PUBLISH, RECEIVE, SETTLE]
    assert receive.parent_span_id == publish.span_id
    assert [each.kind for each in (publish, receive)] == [Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER]
    [of_resource] = server.requests[0].resource_spans
    attributes = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert attributes["service.name"] == "sluice"


@pytest.mark.parametrize(
    ("status", "outcome"), [(400, Delivery.REFUSED), (401, Delivery.REFUSED), (501, Delivery.FAILED)]
)
def test_an_answer_of_the_receiver_says_whether_sending_again_helps(store, begin, server, status, outcome):
    receiver, told = OtlpDelivery(), []

    class Noting:
        def send(self, spans):
            told.append(receiver.send(spans))
            return told[-1]

    server.statuses = [status]
    export = begin(Noting())
    record(store, 1)
    drain(export)
    receiver.close()
    assert told == [outcome, *([Delivery.ACCEPTED] if outcome is Delivery.FAILED else [])]


def test_nobody_listens_is_a_failure_that_may_pass(server, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    receiver = OtlpDelivery()
    assert receiver.send([]) is Delivery.FAILED
    receiver.close()


CONFIG = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="{BROKER}">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue=">" sluice:recordProperties=""/>
  </policyEntries></policyMap></destinationPolicy>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


def test_the_process_exports_what_clients_of_a_real_node_did(store_url, store, server, tmp_path):
    variables = {**os.environ, "SLUICE_DATA": str(tmp_path), "SLUICE_BROKER": BROKER, "REDIS_URL": store_url}
    process = subprocess.Popen([sys.executable, "-m", "analytics.spans.exporter"], env=variables)
    folder = spans_folder(tmp_path, BROKER)
    node = RunningNode(parse_config(CONFIG, {}), store_url)
    try:
        client = StompClient(node.port, **{"client-id": "billing"})
        wait_until(lambda: (found := read_progress(folder)) is not None and found.written_at)
        client.subscribe("/queue/orders", ack="client-individual")
        client.send("/queue/orders", "secret body", traceparent=TRACEPARENT, card="4111", persistent="true")
        client.send("/queue/orders", "secret body", traceparent=TRACEPARENT.removesuffix("01") + "00")
        taken, other = client.take(2)
        client.nack(taken)
        client.ack(other)
        client.leave()
        wait_until(lambda: len(server.spans) >= 3)
    finally:
        node.stop()
        process.terminate()
        assert process.wait(20) == 0
    names = [each.name for each in server.spans]
    assert names == ["publish orders", "receive orders", "dead_letter orders"]
    assert {each.trace_id.hex() for each in server.spans} == {TRACEPARENT.split("-")[1]}
    assert server.spans[0].parent_span_id.hex() == TRACEPARENT.split("-")[2]
    assert server.spans[2].status.code == Status.STATUS_CODE_ERROR
    sent = b"".join(each.SerializeToString() for each in server.requests)
    assert b"secret" not in sent
    assert b"4111" not in sent


def test_one_process_exports_at_a_time(store_url, tmp_path, monkeypatch, caplog):
    for name, value in {"SLUICE_DATA": str(tmp_path), "SLUICE_BROKER": BROKER, "REDIS_URL": store_url}.items():
        monkeypatch.setenv(name, value)
    folder = spans_folder(tmp_path, BROKER)
    folder.mkdir(parents=True)
    with (folder / "_lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert exporter.main() == 1
    assert "another process" in caplog.text
