"""The minimal broker that Sluice is compared with: it keeps the ledger of every row that it takes part in."""

import pytest

from benchmarks import floor
from benchmarks.brokers.minimal import Minimal, resp
from benchmarks.comparison.rounds import Measurement, Result, measure
from benchmarks.floor import ROWS, STORE_HEAD, floor_row, store_rows
from benchmarks.generator.load import Outcome
from benchmarks.scenarios.rows import QUEUE_SCENARIO, SCENARIOS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["queue-8x8", "fan-out-3", "non-persistent", "services", "transactions", "wildcards"])
def test_the_minimal_broker_delivers_every_message_once_and_in_order(name):
    [scenario] = [each for each in SCENARIOS if each.name == name]
    [result] = measure(scenario, [Minimal()], 1, 0.01, lambda _: None).values()
    assert result.failure is None
    assert result.rounds[0].outcome.deliveries > 0


@pytest.mark.slow
def test_the_store_alone_is_measured_for_each_size_of_batches(monkeypatch):
    monkeypatch.setattr(floor, "STORE_SECONDS", 0.1)
    rows = store_rows()
    assert [len(row) for row in rows] == [len(STORE_HEAD)] * len(floor.BATCHES)


def test_rows_of_the_floor_are_rows_of_the_benchmark():
    assert set(ROWS) <= {each.name for each in SCENARIOS}


def test_a_delivery_is_compared_by_its_cpu_of_node_and_store():
    def result(name, cpu, of_store):
        return Result(name, (Measurement(Outcome(1_000_000, 1.0, 0.0), cpu, 0, of_store),))

    row = floor_row(QUEUE_SCENARIO, result("floor", 20, 12), result("sluice", 70, 18))
    assert row == ("queue", "8.0 us", "12.0 us", "20.0 us", "52.0 us", "18.0 us", "70.0 us", "3.5")


def test_a_command_tells_the_store_the_length_of_each_argument():
    assert resp([b"XDEL", b"queue"]) == b"*2\r\n$4\r\nXDEL\r\n$5\r\nqueue\r\n"
