"""Test when depths are recorded: all at start, stop and each full hour, changes every minute."""

import pytest

from brokerapp.tracing.depths import HOUR_US, MINUTE_US, DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, CHANGED, FORWARD, START
from tests.brokerapp.tracing.test_recorder import events, message, moment

HOUR = 1_760_000_000_000_000 // HOUR_US * HOUR_US
A, B = "queue://a", "subscription://client:name"


def noted(recorder: TraceRecorder) -> list[tuple]:
    rows = events(recorder)
    assert {(row["kind"], row["msg_id"], row["consumer"], row["weight"]) for row in rows} <= {("depth", "", None, 1)}
    assert all(row["born"] == row["ts"] and row["original"] == row["destination"] for row in rows)
    return sorted((row["destination"], row["size"], row["reason"]) for row in rows)


def test_a_broker_that_starts_notes_all_logs_that_hold_anything_and_says_that_it_began():
    recorder = TraceRecorder("sluice")
    DepthRecorder(recorder).record(HOUR + 5, {A: 3, B: 1, "queue://empty": 0}, START)
    assert noted(recorder) == [(A, 3, "start"), (B, 1, "start")]


def test_a_node_that_joins_others_notes_what_is_here_as_changed_and_all_of_it_only_at_the_next_full_hour():
    """The broker did not begin with it: whoever reads that must not take it for a time in which nobody ran."""
    recorder = TraceRecorder("sluice")
    depths = DepthRecorder(recorder)
    depths.record(HOUR + 20 * MINUTE_US, {A: 3}, CHANGED)
    assert noted(recorder) == [(A, 3, "changed")]
    recorder.take_encoded()
    depths.record(HOUR + 21 * MINUTE_US, {A: 3, B: 2})
    assert noted(recorder) == [(B, 2, "changed")]
    recorder.take_encoded()
    depths.record(HOUR + HOUR_US + 100_000_000, {A: 3, B: 2})  # late, as the store was away
    assert noted(recorder) == [(A, 3, "all"), (B, 2, "all")]


def test_a_node_that_stops_notes_also_what_did_not_change_and_what_became_empty():
    recorder = TraceRecorder("sluice")
    depths = DepthRecorder(recorder)
    depths.record(HOUR, {A: 3, B: 1}, START)
    recorder.take_encoded()
    depths.record(HOUR + 18 * MINUTE_US, {A: 3}, CHANGED)
    assert noted(recorder) == [(A, 3, "changed"), (B, 0, "changed")]


def test_at_a_new_minute_only_changes_are_noted_and_what_became_empty_or_was_deleted_is_one():
    recorder = TraceRecorder("sluice")
    depths = DepthRecorder(recorder)
    depths.record(HOUR, {A: 3, B: 1, "queue://deleted": 2})
    recorder.take_encoded()
    depths.record(HOUR + MINUTE_US, {A: 4, B: 1})
    assert noted(recorder) == [(A, 4, "changed"), ("queue://deleted", 0, "changed")]
    depths.record(HOUR + 2 * MINUTE_US, {A: 0, B: 1})
    assert noted(recorder) == [(A, 0, "changed")]


def test_at_a_full_hour_all_that_hold_anything_are_noted_again():
    recorder = TraceRecorder("sluice")
    depths = DepthRecorder(recorder)
    depths.record(HOUR + HOUR_US - 1, {A: 3, B: 1})
    recorder.take_encoded()
    depths.record(HOUR + HOUR_US + 400_000, {A: 3, B: 0})
    assert noted(recorder) == [(A, 3, "all"), (B, 0, "changed")]


@pytest.mark.parametrize(("passed_us", "due"), [(0, False), (MINUTE_US - 1, False), (MINUTE_US, True), (-1, True)])
def test_depths_are_due_once_a_minute_of_the_clock(passed_us, due):
    depths = DepthRecorder(TraceRecorder("sluice"))
    assert depths.is_due(HOUR)
    depths.record(HOUR, {})
    assert depths.is_due(HOUR + passed_us) is due


def test_what_is_noted_before_and_after_depths_has_an_earlier_and_no_earlier_time():
    """So a depth, and what was added and taken since, is exact though an event tells when it began to happen."""
    recorder = TraceRecorder("sluice")
    recorder.record_one(FORWARD, HOUR + 100, message(1), A, A, None, None)
    DepthRecorder(recorder).record(HOUR + 100, {A: 1})
    recorder.record_one(FORWARD, HOUR + 90, message(2), A, A, None, None)
    recorder.record_one(ACK, HOUR + 500, message(1), A, A, "c", None)
    long_ago = HOUR - 24 * HOUR_US  # the clock was set back
    recorder.record_one(ACK, long_ago, message(2), A, A, "c", None)
    times = [row["ts"] for row in events(recorder)]
    assert times == [moment(HOUR + at) for at in (100, 101, 101, 500)] + [moment(long_ago)]
