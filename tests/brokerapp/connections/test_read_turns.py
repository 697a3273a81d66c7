"""Test that a fault in what one connection read stops no other."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from brokerapp.connections.read_turns import ReadTurns


class Broken(Exception):
    """A fault of ours."""


def reader(told, name, *, fails=False):
    def handle_reads():
        if fails:
            raise Broken
        told.append(f"{name} read")
        return True

    return SimpleNamespace(
        handle_reads=handle_reads,
        publish=lambda: told.append(f"{name} published"),
        abort=lambda: told.append(f"{name} ended"),
    )


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
