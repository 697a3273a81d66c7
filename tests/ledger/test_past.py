"""Test that charts and latencies from rollups are what clients saw."""

from collections import Counter

import pytest

from analytics.rollups.counters import CounterCell
from analytics.rollups.queries import WHOLE_BROKER
from analytics.rollups.queries import RollupQueries as Rollups
from analytics.rollups.store import MINUTE
from brokerapp.model.destination import Destination
from console.metrics.rollup_history import delays
from tests.ledger import numbers
from tests.ledger.comparing import check
from tests.ledger.expected import PERCENTILES, Expected, milliseconds
from tests.ledger.ledger import ACKED, DEAD, DROPPED, EXPIRED, RETURNED
from tests.ledger.numbers import GIVEN, GONE, SENT, STORED, count, size
from tests.ledger.rules import BROKER


@pytest.fixture(scope="module")
def past(done):
    return Rollups(done.archive / f"broker={BROKER}")


@pytest.fixture(scope="module")
def span(done):
    """The minutes of the load, in seconds since the epoch, and their width."""
    return done.window.since_us // 60_000_000 * 60, done.window.until_us // 1_000_000 + MINUTE, MINUTE


@pytest.fixture(scope="module")
def found(done):
    return numbers.happenings(done.ledger)


def test_rollups_count_what_happened_at_each_destination(past, span, found):
    kinds = {"enqueue": (SENT,), "forward": (STORED,), "dispatch": (GIVEN,), "ack": (ACKED,), "expire": (EXPIRED,),
             "dead_letter": (DEAD, EXPIRED), "drop": (DROPPED,)}  # fmt: skip
    counts = {name: count(found, *what) for name, what in kinds.items()}
    counts |= {"enqueued_bytes": size(found, SENT), "forwarded_bytes": size(found, STORED),
               "acked_bytes": size(found, ACKED)}  # fmt: skip
    places = sorted({place for each in counts.values() for place in each})
    rows, got = [], []
    for place in [WHOLE_BROKER, *places]:
        cell = _together(past.points(*span, place))
        rows.append({"place": place, **{name: each[place] if place else each.total() for name, each in counts.items()}})
        got.append({"place": place, **{name: cell[name] for name in counts}})
    check("rollups", Expected({}, {"cells": (("place",), rows)}), {}, {"cells": got})


def _together(points):
    cell = CounterCell()
    for each in points:
        cell.add(each.cell)
    return cell


def test_what_came_and_left_and_the_depth_are_those_of_the_ledger(done, past, span, found):
    came, left, depths = count(found, STORED, RETURNED), count(found, *GONE), numbers.depths(done.ledger)
    rows = [{"place": place, "came": came[place], "left": left[place], "depth": depth}
            for place, (depth, _) in depths.items()]  # fmt: skip
    sums: dict[str, Counter] = {place: Counter() for place in depths}
    last = dict.fromkeys(depths, 0)
    for _, place, more, less, depth in past.flows(*span, list(depths)):
        sums[place] += Counter(came=more, left=less)
        last[place] = last[place] if depth is None else depth
    got = [{"place": place, "came": each["came"], "left": each["left"], "depth": last[place]}
           for place, each in sums.items()]  # fmt: skip
    check("past", Expected({}, {"flows": (("place",), rows)}), {}, {"flows": got})


def test_depths_at_a_past_moment_are_those_of_the_ledger(done, past, span):
    noted = past.depths_at(span[1])
    assert noted.of == {place: depth for place, (depth, _) in numbers.depths(done.ledger).items() if depth}


def test_times_to_acknowledgement_are_between_what_clients_measured(done, past, span, found):
    for place in {each.copy.place for each in done.ledger.deliveries if each.how == ACKED}:
        told = delays(past, *span, Destination.parse(place))
        mine = [each for each in found if each.place == place]
        times = {"": [each.when - each.born for each in mine if each.what == ACKED]}
        times |= numbers.latencies(mine, lambda each: each.client)
        rows = [
            {"consumer": client, "acked": len(spans),
             **{name: milliseconds(numbers.percentile(spans, part)) for name, part in PERCENTILES.items()}}
            for client, spans in times.items()
        ]  # fmt: skip
        got = [{"consumer": each.consumer, "acked": each.acked, **_percentiles(each)} for each in told]
        check(f"delays {place}", Expected({}, {"of": (("consumer",), rows)}), {}, {"of": got})


def _percentiles(told):
    return {name: getattr(told, name.removesuffix("_ms")) for name in PERCENTILES}
