"""Latency, memory and scaling: what is measured, against a broker of fifty lines, and how it is judged."""

import dataclasses

import pytest
from tiny_broker import TinyBroker

from benchmarks.brokers.process import Usage
from benchmarks.comparison import memory, report
from benchmarks.comparison.latency import Latency, LatencyResult, paced_run
from benchmarks.comparison.memory import UNREAD, MemoryResult
from benchmarks.generator.connection import RunFailed
from benchmarks.generator.load import run
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scaling import Step, scaling_rows
from benchmarks.scenarios.routes import Unread
from benchmarks.scenarios.rows import QUEUE_SCENARIO

DIALECT = ActiveMQDialect()


@pytest.fixture
def broker(request):
    tiny = TinyBroker(**getattr(request, "param", {}))
    yield tiny
    tiny.close()


def test_messages_are_sent_at_the_rate_asked_for_and_each_is_timed(broker):
    latency = paced_run(broker.address, DIALECT, rate=400, count=200)
    assert len(broker.acks) == broker.received == 200
    assert latency.rate < 420
    assert 0 < latency.median_ms <= latency.p99_ms < 1000


@pytest.mark.parametrize("broker", [{"fault": "double"}], indirect=True)
def test_a_delivery_too_many_fails_a_paced_run(broker):
    with pytest.raises(RunFailed, match="200 receipts of 200; 1 received twice"):
        paced_run(broker.address, DIALECT, rate=2000, count=200)


def test_without_consumers_a_run_ends_with_the_last_receipt(broker):
    outcome = run(Traffic(UNREAD), broker.address, DIALECT, 100)
    assert outcome.deliveries == 0
    assert broker.received == 100
    topic = dataclasses.replace(QUEUE_SCENARIO, route=Unread("/topic/VirtualTopic.A"), window=10, block=10)
    run(Traffic(topic), broker.address, DIALECT, 100)
    assert broker.received == 200


def test_memory_is_what_is_resident_before_and_while_messages_wait(broker, monkeypatch):
    class Peer:
        name = "sluice"
        dialect = DIALECT

        def __init__(self):
            self.process = self

        def start(self, scenario, folder):
            return broker.address

        def stop(self):
            pass

        def usage(self):
            return Usage(0, 1000 + broker.received)

    monkeypatch.setattr(memory.time, "sleep", lambda _seconds: None)
    assert memory.measure_memory([Peer()], 0.001) == {"sluice": MemoryResult("sluice", 1000, 1100)}


def test_latencies_are_medians_of_the_rounds_and_compared_with_ours():
    ours = LatencyResult("sluice", (Latency(1, 5, 100), Latency(2, 9, 100), Latency(3, 7, 100)))
    other = LatencyResult("activemq", (Latency(3, 6, 100),))
    failed = LatencyResult("rabbitmq", (), "lost")
    rows = report.latencies({each.peer: each for each in (other, failed, ours)})
    assert rows == [
        ("activemq", "100", "3.00 ms", "6.00 ms", "below", "not below"),
        ("rabbitmq", "failed", "", "", "", ""),
        ("sluice", "100", "2.00 ms", "7.00 ms", "", ""),
    ]


def test_memory_is_compared_with_ours_and_judged_by_the_bars_of_both_brokers():
    found = [
        MemoryResult("activemq", 1 << 20, 4 << 20),
        MemoryResult("rabbitmq", 1 << 20, 3 << 20),
        MemoryResult("x", failure="no"),
        MemoryResult("sluice", 0, 2 << 20),
    ]
    assert report.memory({each.peer: each for each in found}) == [
        ("activemq", "1 MiB", "4 MiB", "0.50 times", "below 0.5 missed"),
        ("rabbitmq", "1 MiB", "3 MiB", "0.67 times", "below 0.8 reached"),
        ("x", "0 MiB", "failed", "", ""),
        ("sluice", "0 MiB", "2 MiB", "", ""),
    ]


def test_memory_of_ours_that_is_missing_reaches_no_bar():
    found = [MemoryResult("activemq", 1, 4), MemoryResult("sluice", failure="lost")]
    assert report.memory({each.peer: each for each in found})[0][3:] == ("", "below 0.5 missed")


@pytest.mark.parametrize(("last", "verdict"), [(15, "flat"), (16, "grows"), (3, "flat")])
def test_what_grows_is_judged_by_its_last_size_against_its_first(last, verdict):
    rows = scaling_rows("backlog", [Step(0, 10, 5), Step(10_000, 99, 5), Step(1_000_000, last, 5)])
    assert [row[-1] for row in rows] == ["", "", verdict]
    assert rows[2][:2] == ("backlog", "1,000,000")
