"""Test how depths are reconstructed from notes, arrivals and removals, and forecast. No Spark."""

import pytest

from analytics.model.capacity import QueueCapacity, capacity_of
from analytics.model.depth_series import MAX_CUTS, DepthSeries, build_series, cuts_of, forecast
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination

NOBODY = ()


def depths(slots, notes=NOBODY, flows=NOBODY):
    """The depths of the log `q`; notes are (slot, moment, depth), flows (slot, part, came, went)."""
    cuts = cuts_of((slot, moment) for slot, moment, _ in notes)
    found = build_series(
        slots, cuts, [("q", *each) for each in notes], [("q", *each, 10 * each[2]) for each in flows]
    )  # fmt: skip
    return found["q"].depths


def test_a_depth_is_that_of_the_last_note_and_what_came_and_went_since():
    assert depths(4, [(0, 5, 100), (2, 25, 90)], [(0, 1, 3, 1), (1, 0, 0, 5), (2, 0, 50, 0), (2, 1, 2, 4)]) == [
        102, 97, 88, 88,
    ]  # fmt: skip


def test_what_happened_before_the_first_note_leads_up_to_it_from_nothing():
    assert depths(3, [(2, 25, 7)], [(0, 0, 4, 0), (1, 0, 4, 1)]) == [4, 7, 7]


def test_a_log_that_nobody_noted_held_at_least_what_left_it():
    assert depths(3, flows=[(0, 0, 0, 5), (1, 0, 2, 4), (2, 0, 1, 0)]) == [2, 0, 1]


def test_a_depth_never_falls_below_nothing():
    assert depths(2, [(0, 5, 1)], [(1, 0, 0, 3)]) == [1, 0]


def test_logs_whose_nodes_note_at_different_moments_are_cut_each_at_its_own():
    cuts = cuts_of([(0, 5), (0, 6)])
    assert cuts == [{0: 5}, {0: 6}]
    found = build_series(
        1, cuts, [("a", 0, 5, 10), ("b", 0, 6, 20)], [("a", 0, 1, 1, 0, 0), ("b", 0, 1, 1, 0, 0), ("b", 0, 2, 2, 0, 0)]
    )
    assert (found["a"].depths, found["b"].depths) == ([11], [22])


def test_of_more_moments_than_cuts_the_last_ones_are_used():
    assert cuts_of((0, moment) for moment in range(9)) == [{0: moment} for moment in range(9 - MAX_CUTS, 9)]


@pytest.mark.parametrize(
    ("came", "went", "limit", "drained", "full"),
    [
        ([0, 10], [0, 20], 1000, 10.0, None),  # 100 waiting, 10 a second fewer
        ([0, 20], [0, 10], 1000, None, 90.0),
        ([0, 10], [0, 10], 1000, None, None),
        ([0, 20], [0, 10], 0, None, None),  # no limit
        ([0, 0], [0, 10], 50, 10.0, 0.0),  # beyond it already
    ],
)
def test_an_outlook_says_when_a_queue_is_empty_or_full(came, went, limit, drained, full):
    found = forecast(DepthSeries([0, 100], came, went), 1.0, 1, limit)
    assert (found.depth, found.drained_seconds, found.full_seconds) == (100, drained, full)


MEGABYTE = 1_000_000
POLICIES = Definitions(
    1,
    policies=(
        PolicyEntry(Destination.queue(">"), store_limit=100 * MEGABYTE),
        PolicyEntry(Destination.queue("small.>"), store_limit=MEGABYTE),
        PolicyEntry(Destination.queue("memory"), memory_limit=MEGABYTE),
    ),
)


@pytest.mark.parametrize(
    ("name", "message_bytes", "limit", "messages", "words"),
    [
        ("queue://small.a", 1000.0, 0, 1000, "storeLimit 976.6 KiB"),
        ("queue://small.a", 1000.0, 900, 900, "900 messages"),
        ("queue://other", 1000.0, 900_000, 100_000, "storeLimit 95.4 MiB"),
        ("queue://small.a", 0.0, 900, 900, "900 messages"),  # how large its messages are is not known
        ("queue://memory", 1000.0, 0, 0, ""),  # its messages are not in memory
        ("topic://small.a", 1000.0, 0, 0, ""),
    ],
)
def test_a_queue_is_full_by_what_is_reached_first(name, message_bytes, limit, messages, words):
    assert capacity_of(name, message_bytes, limit, POLICIES) == QueueCapacity(messages, words)


def test_messages_are_as_large_as_those_that_came():
    assert DepthSeries([0], [4], [0], 1000).message_bytes == 250
    assert DepthSeries([7], [0], [0], 0).message_bytes == 0
