"""Test the pure parts of findings: histograms, causes, routes, consumers, wording. No Spark."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.archive.footer_stats import recording_start_us
from analytics.model import wording
from analytics.model.consumer_states import classify_consumers, were_connected_together
from analytics.model.failure_patterns import GAP, LONGEST, UNKNOWN, pattern_of, without_policy
from analytics.model.routing_coverage import dlq_predicate, edges_of, unmatched_definitions, upstream_destinations
from analytics.model.time_buckets import slot_name, slot_seconds, slot_starts
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.rollups.log_histogram import ERROR, STEPS, percentile, percentiles
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    PolicyEntry,
    VirtualTopic,
)
from brokerapp.model.destination import Destination

HOUR_US = 3_600_000_000


def test_one_duration_is_all_percentiles():
    assert percentile([(160, 1)], 0.99) == pytest.approx(2**10, rel=ERROR + 1e-9)


def test_percentiles_of_parts_add_up_to_those_of_the_whole():
    rows = pa.table({"q": ["a", "b", "a"], "bucket": [0, 3, STEPS], "messages": [50, 7, 50]})
    found = {row["q"]: row for row in percentiles(rows, ["q"]).to_pylist()}
    assert found["a"]["messages"] == 100
    assert (found["a"]["p50_us"], found["a"]["p95_us"]) == (pytest.approx(1, rel=ERROR), pytest.approx(2, rel=ERROR))
    assert percentiles(rows.slice(0, 0), ["q"]).num_rows == 0


POISON = (
    "java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:RedeliveryPolicy {destination = queue://a, "
    "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 6, redeliveryDelay = 1000, preDispatchCheck = true}, cause:"
)
POISONED = f"java.lang.Throwable: Delivery[{GAP}] exceeds redelivery policy limit:{GAP}"


@pytest.mark.parametrize(
    ("cause", "pattern"),
    [
        ("", UNKNOWN),
        ("  card 4711 of 'Ada' expired ", f"card {GAP} of {GAP} expired"),
        ('order "x" and ID:a-1 2 3 failed', f"order {GAP} and {GAP} failed"),
        ("timeout after 30000 ms calling 10.0.0.7:8443", f"timeout after {GAP} ms calling {GAP}"),
        ("größe7 falsch", f"{GAP} falsch"),
        (f"{POISON}java.io.IOException: no card 4", f"{POISONED}, cause:java.io.IOException: no card {GAP}"),
        (f"{POISON}null", f"{POISONED}, cause:null"),
        ("no digits at all", "no digits at all"),
        ("y" * 300, "y" * LONGEST),
    ],
)
def test_what_differs_between_alike_causes_is_cut_out(cause, pattern):
    assert pattern_of(cause) == pattern


def test_a_cause_is_shown_without_the_redelivery_policy_of_the_client():
    told = "java.lang.Throwable: Delivery[7] exceeds redelivery policy limit, cause:java.io.IOException: no card"
    assert without_policy(f"{POISON}java.io.IOException: no card") == told


def queue(name: str) -> Destination:
    return Destination.queue(name)


CHAIN = Definitions(
    1,
    (
        VirtualTopic("V.>"),
        CompositeDestination(queue("a"), (ForwardTarget(queue("b")),)),
        CompositeDestination(queue("b"), (ForwardTarget(queue("c"), "x = 1"),)),
        CompositeDestination(Destination.topic("t"), (ForwardTarget(queue("b")),)),
    ),
)


def test_what_reaches_a_composite_through_others_is_upstream_of_it():
    assert upstream_destinations(CHAIN, queue("b")) == {queue("a"), Destination.topic("t")}
    assert upstream_destinations(CHAIN, queue("a")) == set()
    assert [leg.selector for leg in edges_of(CHAIN) if leg.to == queue("c")] == ["x = 1"]


def test_definitions_that_nothing_was_sent_to_are_unmatched():
    assert [place for _, place in unmatched_definitions(CHAIN, ["topic://V.x", "queue://a", "queue://t"])] == [
        "queue://b",
        "topic://t",
    ]


def test_dead_letters_are_where_policies_say_and_where_they_are_by_default():
    strategy = DeadLetterStrategy("individual", queue_prefix="Failed.", topic_prefix="FailedTopic.")
    is_one = dlq_predicate(Definitions(policies=(PolicyEntry(queue(">"), dead_letter=strategy),)))
    assert [is_one(f"queue://{name}") for name in ("ActiveMQ.DLQ", "Failed.x", "Orders")] == [True, True, False]
    assert not dlq_predicate(None)("queue://Failed.x")


def test_slots_cover_the_window_and_keep_charts_readable():
    window = TimeWindow(90_000_000, HOUR_US + 30_000_000)
    assert slot_seconds(window) == 60
    assert slot_starts(window, 60)[:2] == [60, 120]
    assert slot_starts(window, 60)[-1] == 3600
    assert slot_seconds(TimeWindow(0, 7 * 24 * HOUR_US)) == 1800
    short_ones = [slot_seconds(TimeWindow(0, seconds * 1_000_000)) for seconds in (3, 120, 300, 600, 899, 900)]
    assert short_ones == [5, 5, 15, 30, 30, 60]  # two minutes by the minute would be two points
    assert [slot_name(each) for each in (60, 900, 3600, 21600, 86400)] == [
        "minute",
        "15 minutes",
        "hour",
        "6 hours",
        "day",
    ]


@pytest.mark.parametrize(
    ("said", "words_"),
    [
        (wording.format_duration(412), "412 µs"), (wording.format_duration(3_210), "3.21 ms"),
        (wording.format_duration(150_000_000), "2.5 min"),
        (wording.format_duration(200 * 86_400_000_000), "200 d"), (wording.format_percent(0.0004), "<0.1%"),
        (wording.format_percent(0.125), "12%"), (wording.format_percent(0.021), "2.1%"),
        (wording.format_percent(0.9999), "99.9%"),
        (wording.join_names(["a"]), "a"), (wording.join_names(["a", "b", "c"]), "a, b and c"),
        (wording.join_names(list("abcde")), "a, b, c and 2 more"), (wording.format_bytes(1536), "1.5 KiB"),
        (wording.sentence("", "one thing", "another"), "One thing. Another."), (wording.short_name("topic://t"), "topic://t"),
        (wording.sentence("b2d57aad-9 is stuck"), "b2d57aad-9 is stuck."), (wording.client_name("desk-1"), "desk-1"),
        (wording.client_name("b2d57aad-9"), "an unnamed client (b2d57aad-9)"), (wording.format_signed(-1204), "−1,204"),
        (wording.client_label("b2d57aad-9"), "unnamed (b2d57aad-9)"), (wording.client_label("billing-1"), "billing-1"),
    ],
)  # fmt: skip
def test_numbers_and_names_read_well(said, words_):
    assert said == words_


def test_rates_and_charts_are_of_the_time_in_which_anything_was_recorded():
    asked = TimeWindow(HOUR_US, 2 * HOUR_US)
    for began, since in ((None, HOUR_US), (7, HOUR_US), (HOUR_US + 60, HOUR_US + 60), (3 * HOUR_US, 2 * HOUR_US - 1)):
        assert RunQuestion(asked, None, began_us=began).covered == TimeWindow(since, 2 * HOUR_US)


def test_when_recording_began_is_read_off_the_files_of_the_first_hour(tmp_path):
    assert recording_start_us(tmp_path) is None
    for hour, moments in (("05", [HOUR_US * 5 + 9, HOUR_US * 5 + 4]), ("06", [HOUR_US * 6])):
        folder = tmp_path / "broker=b" / "day=1970-01-01" / f"hour={hour}"
        folder.mkdir(parents=True)
        rows = pa.table({"kind": ["ack"] * len(moments), "ts": pa.array(moments, pa.timestamp("us", "UTC"))})
        pq.write_table(rows, folder / "part-1-0.parquet")
    assert recording_start_us(tmp_path) == HOUR_US * 5 + 4


@pytest.mark.parametrize(
    ("acked", "verdict", "misplaced"),
    [
        ((50, 34, 17), "uneven", 0.165),
        ((74, 26), "uneven", 0.24),
        ((100, 0), "uneven", 0.5),
        ((55, 45), "even", 0.05),
        ((34, 33, 33), "even", 0.0067),
        ((9, 1), "too few messages", 0.4),
    ],
)
def test_shares_are_uneven_by_the_part_of_the_messages_that_others_would_have_to_take(acked, verdict, misplaced):
    from analytics.jobs import consumer_balance

    queue = consumer_balance.balance_of(
        "queue://q", [{"client": f"c{number}", "acked": count} for number, count in enumerate(acked)]
    )
    assert (queue["verdict"], queue["misplaced"]) == (verdict, pytest.approx(misplaced, abs=1e-4))


WINDOW = TimeWindow(0, HOUR_US)


def _at(minutes: float) -> datetime:
    return datetime.fromtimestamp(minutes * 60, UTC)


def _consumer(client: str, **given) -> dict:
    """A row of schemas.CLIENTS: who took ten messages and finished them in the first minute."""
    done = {"dispatched": 10, "acked": 10, "ended": 10, "given": 10, "finished": 10, "held_ms": 100, "redelivered": 0}
    lasts = {"last_dispatched": _at(1), "last_ended": _at(1), "began_at": _at(0), "left_at": None, "came_at": _at(0)}
    return {"destination": "queue://q", "client": client, "arrived": 0, **done, **lasts, **given}


def test_who_left_is_not_judged_and_who_came_back_is():
    rows = [
        _consumer("left", left_at=_at(2)),
        _consumer("came-back", left_at=_at(2), began_at=_at(3)),
        _consumer("came-back-unheard", left_at=_at(2), last_dispatched=_at(3), last_ended=_at(3)),
        _consumer("stayed"),
        {**_consumer("x", dispatched=0), "client": None, "arrived": 1000},
    ]
    found = {each.client: (str(each.state), each.left_us) for each in classify_consumers(rows, WINDOW, 300)}
    assert found["left"] == ("healthy", 120_000_000)
    assert {found[each] for each in ("came-back", "came-back-unheard", "stayed")} == {("lagging", None)}


def test_whoever_consumed_before_the_broker_began_left():
    began = {**_consumer("x", dispatched=0), "destination": "queue://>", "client": None, "left_at": _at(5)}
    rows = [_consumer("killed-with-it", ended=9, finished=9), _consumer("later", began_at=_at(6)), began]
    found = {each.client: (each.left_us, each.holds) for each in classify_consumers(rows, WINDOW, 300)}
    assert found == {"killed-with-it": (300_000_000, 0), "later": (None, 0)}


def test_consumers_are_slow_beside_those_that_were_there_with_them_only():
    slow = {"held_ms": 100_000}
    rows = [_consumer("first", left_at=_at(2), **slow), _consumer("second", came_at=_at(3), began_at=_at(3))]
    assert {str(each.state) for each in classify_consumers(rows, WINDOW, 3600)} == {"healthy"}
    met = [rows[0], _consumer("second", came_at=_at(1))]
    assert {each.client: str(each.state) for each in classify_consumers(met, WINDOW, 3600)} == {
        "first": "slow",
        "second": "healthy",
    }
    assert (were_connected_together(*rows), were_connected_together(*met)) == (False, True)
