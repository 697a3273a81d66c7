"""Dead letters that failed alike: what of a cause counts, and the selector that finds a group again."""

import pytest

from brokerapp.destination import Destination
from brokerapp.selectors import compile_selector
from brokerapp.snapshot import BrowsedMessage, BrowsePage, DestinationStats
from console.dead_letters import Cluster, pattern_of, survey


@pytest.mark.parametrize(
    ("cause", "pattern"),
    [
        ("rejected by ada-3f2a9c1e-77bd (NACK)", "rejected by … (NACK)"),
        ("rejected by 0c9f4bd1-12ca-4bd0-8a0f-ffaa00bb11cc (NACK)", "rejected by … (NACK)"),
        ("rejected by billing (NACK)", "rejected by billing (NACK)"),
        ("order 4711 of C-1009 at 12:30:05,123", "order … of … at …"),
        ("timeout after 30s to 10.0.0.17:5432", "timeout after … to …"),
        ("no customer 'Ada \"of\" 1842' in ID:host-1:2:3", "no customer … in …"),
        ("worker_07/worker_08 0xdeadBEEF", "…/… …"),
        ("  ", "no cause is recorded"),
    ],
)
def test_what_differs_between_failures_that_are_alike_is_left_out(cause, pattern):
    assert pattern_of(cause) == pattern_of(pattern) == pattern.replace("… …", "…")


@pytest.mark.parametrize(
    ("cause", "alike", "other"),
    [
        ("rejected by ca-b1 (NACK)", "rejected by 77 (NACK)", "refused by ca-b1 (NACK)"),
        ("it's 100% full: disk_2", "it's 99% full: sda1", "it's 100 full: disk_2"),
        (
            "no customer 'O''Neil' in shop_a\\b-7",
            "no customer 'Ada' in shop_a\\b-8",
            "no customer 'Ada' in shopXa\\b-8",
        ),
        ("x" * 300, "x" * 200, "x" * 199),
        ("out of memory", "out of memory", "out of memory again"),
    ],
)
def test_the_selector_of_a_group_finds_what_failed_alike_and_nothing_else(cause, alike, other):
    selector = compile_selector(Cluster(pattern_of(cause), "/queue/orders").selector)

    def matches(text: str) -> bool:
        return selector.matches({"dlqDeliveryFailureCause": text, "dlqRoute": "/queue/orders"}) is True

    assert (matches(cause), matches(alike), matches(other)) == (True, True, False)


def test_the_whole_is_the_sum_of_its_queues_as_they_were_read():
    queue, message = Destination.queue("DLQ"), BrowsedMessage(1, "ID:1", "/queue/DLQ", None, {}, b"", 0)
    page = BrowsePage([message] * 3, 3, None)  # one came since the node told its numbers
    found = survey([DestinationStats(queue, QueueSize=2)], lambda *_: page)
    assert (found.total, found.holds, found.complete) == (3, {queue: 3}, True)
    unread = survey([DestinationStats(queue, QueueSize=2)], lambda *_: page, patience=0)
    assert (unread.total, unread.holds, unread.complete) == (2, {queue: 2}, False)


def test_a_long_word_without_a_digit_is_looked_at_once():
    assert pattern_of("a-" * 100_000) == ("a-" * 100_000)[:200]
