"""Test the history of depths: points of changes, packed, merged and bounded. No I/O."""

import pytest

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.time_series import (
    BrokerPoint,
    DestinationPoint,
    HistoryAdmission,
    HistorySampler,
    merge_broker_points,
    merge_destination_points,
    pack_point,
    unpack_broker_points,
    unpack_destination_points,
)

AWAY = {"links_down": 5, "away": 6, "held_back": 7, "slow": 8}
A, B, T = Destination.queue("a"), Destination.queue("b"), Destination.topic("t")


def stats(destination=A, enqueued=0, dequeued=0, **more) -> DestinationStats:
    return DestinationStats(destination, EnqueueCount=enqueued, DequeueCount=dequeued, **more)


def sampled(*looks: list[DestinationStats]) -> list[dict]:
    sampler = HistorySampler()
    return [sampler.points(10 * number, {each.destination: each for each in look}) for number, look in enumerate(looks)]


def test_a_point_is_made_of_what_changed_and_of_nothing_else():
    still = stats(B, 5, QueueSize=5)
    _, second, third = sampled(
        [stats(A, 3, 1, QueueSize=2), still],
        [stats(A, 10, 4, QueueSize=6), still],
        [still, stats(A, 10, 4, QueueSize=6)],
    )
    assert second == {A: DestinationPoint(10, 6, 7, 3, 0)}
    assert third == {}


def test_what_comes_to_exist_between_two_looks_counts_from_nothing():
    assert sampled([], [stats(A, 4, 1, QueueSize=3)])[1] == {A: DestinationPoint(10, 3, 4, 1, 0)}


def test_a_node_that_starts_anew_makes_no_negative_step():
    assert sampled([stats(A, 1000, 900, QueueSize=100)], [stats(A, 5, 2, QueueSize=103)])[1][A].arrived == 5


def test_of_a_topic_what_left_is_what_was_handed_out():
    before, after = stats(T, 1, DispatchCount=2), stats(T, 4, DispatchCount=11)
    assert sampled([before], [after])[1] == {T: DestinationPoint(10, 0, 3, 9, 0)}


def test_named_subscriptions_have_a_history_and_temporary_destinations_none():
    log, temporary = Destination(DestinationKind.SUBSCRIPTION, "c:s"), Destination(DestinationKind.TEMP_QUEUE, "t")
    assert sampled([], [stats(log, 4, 1, QueueSize=3), stats(temporary, 4)])[1] == {
        log: DestinationPoint(10, 3, 4, 1, 0)
    }


def test_what_seldom_happens_makes_a_point_by_itself():
    before, after = stats(A, 5, 5), stats(A, 5, 5, ExpiredCount=1, RedeliveredCount=2, DroppedCount=3, BlockedSends=4)
    assert sampled([before], [after])[1] == {A: DestinationPoint(10, 0, 0, 0, 0, 1, 2, 3, 4)}


def test_points_are_kept_in_a_few_bytes_and_read_as_they_were():
    point, whole = (
        DestinationPoint(1_700_000_000, 1, 2, 3, 4),
        BrokerPoint(1_700_000_000, 1, 2, 3, 4, 5, 6, 2**40, 2**41),
    )
    assert unpack_destination_points([pack_point(point)]) == [point]
    assert unpack_broker_points([pack_point(whole)]) == [whole]
    assert len(pack_point(point)) == 20
    seldom, told = point._replace(redelivered=7), whole._replace(memory=1, machine=2, temporary=3, nodes=4, **AWAY)
    assert (unpack_destination_points([pack_point(seldom)]), unpack_broker_points([pack_point(told)])) == (
        [seldom],
        [told],
    )
    watched = told._replace(disk=0)
    assert unpack_broker_points([pack_point(watched)]) == [watched]
    assert (
        unpack_destination_points([pack_point(DestinationPoint(1, 2**40, 0, 0, 0))])[0].pending == 2**32 - 1
    )  # what does not fit is cut, not refused


def test_a_minute_adds_up_what_moved_and_keeps_where_it_stood_last():
    fine = [DestinationPoint(10, 5, 1, 2, 0, expired=1), DestinationPoint(20, 9, 4, 0, 3, expired=2)]
    assert merge_destination_points(fine, 60) == DestinationPoint(60, 9, 5, 2, 3, expired=3)
    last = BrokerPoint(20, 9, 4, 1, 0, 2, 7, 8, 9)
    assert merge_broker_points([last._replace(at=10, arrived=1), last], 60) == last._replace(at=60, arrived=5, left=2)


def test_those_who_move_keep_their_history_and_those_who_stand_still_make_room():
    admission = HistoryAdmission({"old": 0, "older": -50, "busy": 990}, most=3, still=600)
    assert admission.admit(["busy", "new", "newer"], 1000) == (["busy", "new", "newer"], ["older", "old"])
    assert admission.admit(["late"], 1001) == ([], [])  # nobody stood still for long enough
    assert set(admission.moved) == {"busy", "new", "newer"}


@pytest.mark.parametrize("count", [5, 50])
def test_there_are_never_more_than_fit(count):
    admission = HistoryAdmission({}, most=10, still=600)
    admitted, _ = admission.admit([str(number) for number in range(count)], 1)
    assert len(admitted) == len(admission.moved) == min(count, 10)


def test_what_did_not_move_for_long_is_forgotten():
    admission = HistoryAdmission({"old": 1, "new": 100}, most=10, still=600)
    assert admission.expire(50) == ["old"]
    assert admission.expire(50) == []
