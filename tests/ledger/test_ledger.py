"""Test the ledger and the figures computed from it, on hand-written facts."""

import pytest

from tests.ledger import numbers
from tests.ledger.comparing import differences
from tests.ledger.expected import Expected
from tests.ledger.ledger import ACKED, DEAD, EXPIRED, LEFT, PUT_OFF, REJECTED, RETURNED, Ledger, Span

QUEUE, TOPIC, DLQ = "queue://q", "topic://t", "queue://dlq"


def at(moment, length=2):
    """From this moment on."""
    return Span(moment, moment + length)


@pytest.fixture
def ledger():
    return Ledger()


def send(ledger, *moments, to=QUEUE, size=10, places=None):
    sent = []
    for moment in moments:
        message = ledger.send("producer", to, size)
        message.born = at(moment)
        ledger.arrive([message], places, at(moment))
        sent.append(message)
    return sent


def test_what_is_acknowledged_is_gone_and_counted_once(ledger):
    send(ledger, 10, 20)
    delivery = ledger.give(0, QUEUE, "consumer", 35)
    ledger.end(delivery, ACKED, at(40))
    assert [each.message.number for each in ledger.waiting(QUEUE)] == [1]
    assert numbers.counters(ledger)[QUEUE] == {
        "QueueSize": 1, "EnqueueCount": 2, "EnqueueBytes": 20, "DequeueCount": 1, "DequeueBytes": 10,
        "DispatchCount": 1, "MinMessageSize": 10, "MaxMessageSize": 10,
    }  # fmt: skip


def test_what_was_rolled_back_was_not_sent(ledger):
    sent = [ledger.send("producer", QUEUE, 1) for _ in range(3)]
    ledger.roll_back(sent[:2], at(5))
    ledger.arrive(sent[2:], None, at(5))
    found = numbers.happenings(ledger)
    assert numbers.count(found, numbers.SENT) == numbers.count(found, numbers.STORED) == {QUEUE: 1}
    assert numbers.count(found, numbers.ROLLED_BACK) == {QUEUE: 2}


def test_a_dead_letter_left_its_queue_and_came_to_another_place(ledger):
    send(ledger, 10)
    delivery = ledger.give(0, QUEUE, "consumer", 20)
    ledger.end(delivery, REJECTED, at(20))
    ledger.become(delivery.copy, DLQ, EXPIRED, at(20), DEAD, "expired")
    assert numbers.depths(ledger) == {QUEUE: (0, 0), DLQ: (1, 1)}
    assert numbers.counters(ledger)[QUEUE]["ExpiredCount"] == numbers.counters(ledger)[QUEUE]["DeadLetterCount"] == 1


def test_what_comes_back_after_a_delay_is_one_stay_and_no_new_copy(ledger):
    send(ledger, 10)
    first = ledger.give(0, QUEUE, "consumer", 20)
    ledger.end(first, REJECTED, at(20))
    ledger.become(first.copy, QUEUE, PUT_OFF, at(20), RETURNED)
    ledger.end(ledger.give(0, QUEUE, "consumer", 40), ACKED, at(50))
    assert [[copy.by for copy in stay] for stay in numbers.stays(ledger)] == [["sent", "returned"]]
    assert numbers.count(numbers.happenings(ledger), numbers.STORED) == {QUEUE: 1}
    assert numbers.depths(ledger)[QUEUE] == (0, 0)


def test_who_leaves_gives_back_what_it_held(ledger):
    send(ledger, 10)
    ledger.end(ledger.give(0, QUEUE, "one", 20), LEFT, at(30))
    again = ledger.give(0, QUEUE, "other", 50)
    assert again.given == Span(30, 50)
    assert len(again.copy.deliveries) == 2
    assert numbers.counters(ledger)[QUEUE]["InFlightCount"] == 1


def test_subscribers_of_a_topic_have_a_copy_each_that_is_kept_nowhere(ledger):
    send(ledger, 10, to=TOPIC)
    for name in ("one", "other"):
        ledger.end(ledger.give(0, TOPIC, name, 12), ACKED, at(12))
    assert numbers.depths(ledger) == {}
    found = numbers.counters(ledger)[TOPIC]
    assert (found["EnqueueCount"], found["DispatchCount"], found["DequeueCount"]) == (1, 2, 2)


def test_copies_come_where_the_load_says(ledger):
    send(ledger, 10, to=TOPIC, places={TOPIC: [QUEUE, DLQ]})
    assert {(each.place, each.original) for each in ledger.copies} == {(QUEUE, TOPIC), (DLQ, TOPIC)}


def test_depths_in_between_have_a_least_and_a_greatest_value(ledger):
    send(ledger, 10, 20)
    ledger.end(ledger.give(0, QUEUE, "consumer", 30), ACKED, at(30, 10))
    found = [numbers.depths(ledger, moment)[QUEUE] for moment in (5, 11, 15, 25, 35, 45)]
    assert found == [(0, 0), (0, 1), (1, 1), (2, 2), (1, 2), (1, 1)]


def test_percentiles_lie_between_those_of_the_shortest_and_the_longest_times():
    times = [Span(each, 2 * each) for each in range(1, 101)]
    assert numbers.percentile(times, 0.95) == Span(95, 190)
    assert numbers.percentile(times[:1], 0.5) == Span(1, 2)


def test_how_long_something_took_is_known_as_well_as_its_ends():
    assert Span(50, 60) - Span(10, 30) == Span(20, 50)
    assert Span(50, 60) - Span(10, 70) == Span(0, 50)


def test_a_comparison_names_each_figure_that_is_wrong_missing_or_not_expected():
    wanted = Expected({"Sent": 2, "Lost": 0}, {"table": (("place",), [
        {"place": "a", "exact": 1, "between": (1, 3), "free": ...}, {"place": "b", "exact": 1},
    ])})  # fmt: skip
    got = {"Sent": 3, "More": 1}, {"table": [{"place": "a", "exact": 1, "between": 4, "free": 9}, {"place": "c"}]}
    assert differences("x", wanted, *got) == [
        "x.Lost: missing", "x.More: not expected: 1", "x.Sent: expected 2, got 3",
        "x.table[a].between: expected 1 to 3, got 4", "x.table[b]: a row that is missing: None",
        "x.table[c]: a row that is not expected: {'place': 'c'}",
    ]  # fmt: skip
