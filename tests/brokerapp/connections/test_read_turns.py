"""Test that a fault in what one connection read stops no other."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from brokerapp.connections.read_turns import ReadTurns


class Broken(Exception):
    """A fault of ours."""


def reader(told, name, *, fails=False, reads=1):
    """A connection with so many reads, each of which fills a turn where there are several."""

    def handle_reads(limit):
        if fails:
            raise Broken
        told.append(f"{name} read")
        connection.has_reads = told.count(f"{name} read") < reads
        return limit if reads > 1 else 100

    connection = SimpleNamespace(
        has_reads=True,
        handle_reads=handle_reads,
        publish=lambda: told.append(f"{name} published"),
        abort=lambda: told.append(f"{name} ended"),
    )
    return connection


@contextmanager
def not_joining():
    yield


@pytest.mark.parametrize(
    ("first_fails", "joining_fails", "expected"),
    [
        (False, False, ["a read", "b read", "a published", "b published", "dispatched"]),
        (True, False, ["a ended", "b read", "b published", "dispatched"]),
        (False, True, ["a read", "b read", "a published", "b published", "a ended", "b ended", "dispatched"]),
    ],
)
def test_a_fault_ends_the_connections_that_it_concerns_and_the_others_go_on(first_fails, joining_fails, expected):
    told, soon = [], []

    @contextmanager
    def joining():
        yield
        if joining_fails:
            raise Broken

    turns = ReadTurns(joining=joining, dispatch=lambda: told.append("dispatched"), call_soon=soon.append)
    turns.add(reader(told, "a", fails=first_fails))
    turns.add(reader(told, "b"))
    [run] = soon
    run()
    assert told == expected


def turns_of(told):
    """Return the turns of a node, and what was scheduled."""
    soon = []
    return ReadTurns(joining=not_joining, dispatch=lambda: told.append("dispatched"), call_soon=soon.append), soon


def test_what_is_read_beyond_the_bytes_of_a_turn_is_handled_in_the_next_turns_and_others_come_between():
    told = []
    turns, soon = turns_of(told)
    for each in reader(told, "a", reads=3), reader(told, "b"), reader(told, "c", reads=2):
        turns.add(each)
    while soon:
        soon.pop()()
    assert [each for each in told if not each.endswith("published")] == [
        "a read", "dispatched",
        "b read", "c read", "dispatched",
        "a read", "dispatched",
        "c read", "dispatched",
        "a read", "dispatched",
    ]  # fmt: skip


def test_reads_that_come_while_others_wait_for_the_next_turn_schedule_no_turn_of_their_own():
    told = []
    turns, soon = turns_of(told)
    turns.add(reader(told, "a", reads=2))
    soon.pop()()
    turns.add(reader(told, "b"))
    assert len(soon) == 1
