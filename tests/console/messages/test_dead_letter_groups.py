"""Test how dead letters are grouped by cause, and the selectors that find a group."""

import re
import time
from dataclasses import replace

import pytest
from django.urls import reverse

from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    EARLIER_CAUSE,
    FAILED_AT,
    FIRST_FAILED_AT,
    RESUBMIT_COUNT,
    with_broker_headers,
)
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, BrowsePage, DestinationStats
from brokerapp.selectors import compile_selector
from console.messages.dead_letter_groups import (
    DeadLetterGroup,
    group_dead_letters,
    histogram,
    pattern_of,
    survey_queues,
)
from console.messages.search.lookup import match_reason, parse_query


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
        ("  ", "no cause recorded"),
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
    selector = compile_selector(DeadLetterGroup(pattern_of(cause), "/queue/orders").selector)

    def matches(text: str) -> bool:
        return selector.matches({"dlqDeliveryFailureCause": text, "dlqRoute": "/queue/orders"}) is True

    assert (matches(cause), matches(alike), matches(other)) == (True, True, False)


def test_the_whole_is_the_sum_of_its_queues_as_they_were_read():
    queue, message = Destination.queue("DLQ"), BrowsedMessage(1, "ID:1", "/queue/DLQ", None, {}, b"", 0)
    page = BrowsePage([message] * 3, 3, None)  # one came since the node told its numbers
    found = survey_queues([DestinationStats(queue, QueueSize=2)], lambda *_: page)
    assert (found.total, found.depths, found.complete) == (3, {queue: 3}, True)
    unread = survey_queues([DestinationStats(queue, QueueSize=2)], lambda *_: page, patience=0)
    assert (unread.total, unread.depths, unread.complete) == (2, {queue: 2}, False)


def test_a_long_word_without_a_digit_is_looked_at_once():
    assert pattern_of("a-" * 100_000) == ("a-" * 100_000)[:200]


def test_failures_are_counted_in_the_singular_and_the_plural(admin, console, monkeypatch):
    def page(count: int) -> str:
        failed = {CAUSE: "boom", FAILED_AT: str(int(time.time() * 1000) - 1000)}
        headers = {**failed, **with_broker_headers({}, failed)}
        found = [BrowsedMessage(seq, f"ID:{seq}", "/queue/DLQ", None, headers, b"", 0) for seq in range(1, count + 1)]
        stats = [DestinationStats(Destination.queue("DLQ"), QueueSize=count)]
        read = survey_queues(stats, lambda *_: BrowsePage(found, count, None))
        monkeypatch.setattr("console.messages.views.dead_letters.survey_visible", lambda _: read)
        return re.sub(r"<[^>]+>", "", admin.get(reverse("dead-letters")).content.decode())

    assert "1 failure of stored messages" in page(1)
    assert "2 failures of stored messages" in page(2)


def test_the_times_of_a_group_are_those_the_broker_wrote_and_its_history_counts_them_by_parts():
    queue, failed = (
        Destination.queue("DLQ"),
        {CAUSE: "boom", FAILED_AT: "1500", "dlqConsumer": "w", RESUBMIT_COUNT: "2"},
    )
    written = {**failed, **with_broker_headers({}, failed), "timestamp": "100"}
    forged = {**failed, FAILED_AT: "1900", "timestamp": "1100"}
    [group] = group_dead_letters(
        (queue, BrowsedMessage(seq, f"ID:{seq}", queue.stomp, None, headers, b"", 0))
        for seq, headers in enumerate((written, forged))
    )
    assert (group.count, group.claimed, group.resubmitted) == (2, 1, 1)
    assert (sorted(group.times), group.top_consumers) == ([1100, 1500], ["w"])
    assert group.bars(1000, 2000, 4) == [1, 0, 1, 0]
    assert histogram([999, 1000, 1999, 2000, 2001], 1000, 2000, 2) == [1, 2], "what lies outside is not counted"


def dead_letter(seq: int, **written: str) -> tuple[Destination, BrowsedMessage]:
    headers = {**written, **with_broker_headers({}, written)}
    queue = Destination.queue("DLQ")
    return queue, BrowsedMessage(seq, f"ID:{seq}", queue.stomp, None, headers, b"", 0)


def test_a_group_is_as_old_as_the_first_failure_of_messages_that_were_resubmitted_and_failed_alike():
    again = {CAUSE: "order 17 timed out", FAILED_AT: "9000"}
    alike, otherwise = "order 4 timed out", "no such customer"
    [group] = group_dead_letters([dead_letter(1, **again, **{EARLIER_CAUSE: alike, FIRST_FAILED_AT: "2000"})])
    assert (group.first.timestamp(), group.last.timestamp()) == (2, 9)
    [other] = group_dead_letters([dead_letter(1, **again, **{EARLIER_CAUSE: otherwise, FIRST_FAILED_AT: "2000"})])
    assert other.first.timestamp() == 9, "it failed of something else before"


def test_a_group_that_was_seen_is_not_new_after_a_resubmission_failed_alike(admin, console, monkeypatch):
    minute_ago = str(int(time.time() * 1000) - 60_000)
    badge = '<span class="badge badge-act">New</span>'

    def page(**written: str) -> str:
        stats = [DestinationStats(Destination.queue("DLQ"), QueueSize=1)]
        read = survey_queues(stats, lambda *_: BrowsePage([dead_letter(1, **written)[1]], 1, None))
        monkeypatch.setattr("console.messages.views.dead_letters.survey_visible", lambda _: read)
        return admin.get(reverse("dead-letters")).content.decode()

    assert badge not in page(**{CAUSE: "boom", FAILED_AT: minute_ago})
    now = str(int(time.time() * 1000) + 1)
    resubmitted = {EARLIER_CAUSE: "boom", FIRST_FAILED_AT: minute_ago}
    assert badge not in page(**{CAUSE: "boom", FAILED_AT: now}, **resubmitted)
    assert badge in page(**{CAUSE: "no such customer", FAILED_AT: str(int(now) + 60_000)}, **resubmitted)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ID:1", "message id"), ("correlation:c-7", "correlation-id"), ("c-7", "correlation-id"),
        ("order:4711", "order"), ("4711", "order"), ("correlation:4711", ""), ("order:c-7", ""), ("other", ""),
    ],
)  # fmt: skip
def test_a_message_is_found_by_its_id_its_correlation_id_and_indexed_properties(text, found, settings):
    settings.SLUICE = replace(settings.SLUICE, indexed=("correlation-id", "order"))
    headers = {"correlation-id": "c-7", "order": "4711", "secret": "other"}
    assert match_reason(BrowsedMessage(1, "ID:1", "/queue/a", None, headers, b"", 0), *parse_query(text)) == found
