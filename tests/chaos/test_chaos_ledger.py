"""Test that the ledger finds each kind of broken promise, and nothing in correct histories."""

from collections.abc import Sequence

import pytest

from tests.chaos.ledger import IN_TRANSIT_SECONDS, ConsumerConnection, Ledger, Order, Sent, ViolationKind

DEAD_LETTERS = ConsumerConnection("d", "dead", "a", 1)
X, Y, ELSEWHERE = (
    ConsumerConnection("x", "q", "a", 1),
    ConsumerConnection("y", "q", "a", 1),
    ConsumerConnection("z", "q", "b", 1),
)
LATER = 10.0


class History:
    """What happened at the queue `q`, second by second."""

    def __init__(self, order: Order = Order.NONE) -> None:
        self.ledger, self.now = Ledger({"q": order, "out": Order.NONE, "dead": Order.NONE}, {"q": "dead"}), 0.0

    def send(self, *numbers: int, confirmed: bool = True, places: Sequence[str] = ("q",), **about: str) -> "History":
        """One producer sends these."""
        for number in numbers:
            self.ledger.send(Sent(f"m{number}", "p", number, tuple(places), **about))
        if confirmed:
            self.ledger.confirm([f"m{number}" for number in numbers], self.now)
        return self

    def give(
        self,
        *numbers: int,
        to: ConsumerConnection = X,
        flagged: bool = False,
        settled: bool = True,
        rejected: bool = False,
    ) -> "History":
        """A consumer gets these, and acknowledges them or not; or it rejects them, which is confirmed or not."""
        for number in numbers:
            self.now += 1
            given = self.ledger.deliver(f"m{number}", to, self.now, flagged=flagged)
            if settled or rejected:
                self.ledger.settle(given, rejected=rejected)
            if settled:
                given.confirmed_at = self.now
        return self

    @property
    def wrong(self) -> list[ViolationKind]:
        """What is found."""
        return [each.kind for each in self.ledger.violations()]


def test_what_comes_once_and_in_order_is_fine():
    assert History(Order.PRODUCER).send(1, 2, 3).give(1, 2, 3).wrong == []


def test_what_was_confirmed_and_never_came_is_lost_and_what_was_not_confirmed_is_not():
    assert History().send(1, 2).give(1).wrong == [ViolationKind.LOST]
    assert History().send(1).send(2, confirmed=False).give(1).wrong == []


def test_what_comes_to_one_of_two_places_only_is_lost_at_the_other():
    history = History().send(1, places=("q", "out")).give(1)
    assert [(each.kind, each.place) for each in history.ledger.violations()] == [(ViolationKind.LOST, "out")]


@pytest.mark.parametrize("confirmed", [True, False])
def test_what_comes_again_says_so(confirmed):
    history = History().send(1, confirmed=confirmed).give(1, settled=False)
    assert history.give(1, to=Y, flagged=True).wrong == []
    history = History().send(1, confirmed=confirmed).give(1, settled=False)
    assert history.give(1, to=Y).wrong == [ViolationKind.DUPLICATE]


def test_what_was_acknowledged_for_sure_never_comes_again():
    history = History().send(1).give(1)
    history.now += IN_TRANSIT_SECONDS
    assert history.give(1, to=Y, flagged=True).wrong == [ViolationKind.REDELIVERED_AFTER_ACK]


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (True, True)])
def test_what_a_bridge_is_in_doubt_about_may_come_at_both_brokers_when_one_says_so(first, second, settled):
    history = History().send(1).give(1, flagged=first, settled=settled)
    history.now += IN_TRANSIT_SECONDS
    assert history.give(1, to=ELSEWHERE, flagged=second).wrong == []


def test_what_comes_at_two_brokers_and_neither_says_so_is_repeated():
    assert History().send(1).give(1, settled=False).give(1, to=ELSEWHERE).wrong == [ViolationKind.DUPLICATE]


def test_one_consumer_gets_what_a_producer_sent_in_order_but_for_what_is_flagged_or_was_not_confirmed():
    assert History(Order.PRODUCER).send(1, 2).give(2, 1).wrong == [ViolationKind.OUT_OF_ORDER]
    assert History(Order.PRODUCER).send(1, 2).give(2).give(1, flagged=True).wrong == []
    assert History(Order.PRODUCER).send(1, confirmed=False).send(2).give(2, 1).wrong == []
    assert History(Order.NONE).send(1, 2).give(2, 1).wrong == []


def test_in_groups_only_each_group_keeps_order():
    assert History(Order.GROUP).send(1, group="g").send(2, group="h").give(2, 1).wrong == []
    assert History(Order.GROUP).send(1, 2, group="g").give(2, 1).wrong == [ViolationKind.OUT_OF_ORDER]


@pytest.mark.parametrize(("group", "wrong"), [("g", [ViolationKind.SPLIT_GROUP]), ("", [])])
def test_a_group_goes_to_another_consumer_only_when_the_first_holds_none_of_it(group, wrong):
    history = History(Order.GROUP).send(1, 2, group=group)
    first = history.ledger.deliver("m1", X, 1.0, flagged=False)
    second = history.ledger.deliver("m2", Y, 2.0, flagged=False)
    for each in (first, second):
        history.ledger.settle(each)
        each.confirmed_at = 3.0
    assert history.wrong == wrong


def test_a_consumer_that_could_not_acknowledge_what_it_held_of_a_group_was_gone():
    history = History(Order.GROUP).send(1, 2, group="g").give(1, settled=False)
    assert history.give(1, to=Y, flagged=True).give(2, to=Y).wrong == []


def test_of_a_transaction_all_comes_or_nothing():
    assert History().send(1, 2, confirmed=False, unit="t").give(1).wrong == [ViolationKind.PARTIAL_TRANSACTION]
    assert History().send(1, 2, confirmed=False, unit="t").wrong == []
    assert History().send(1, 2, confirmed=False, unit="t").give(1, 2).wrong == []


def test_what_is_passed_on_in_transactions_is_passed_on_once():
    history = History().send(1).send(2, 3, confirmed=False, source="m1")
    assert history.give(1, 2).wrong == []
    assert history.give(3).wrong == [ViolationKind.FORWARDED_TWICE]


def test_what_is_rejected_is_a_dead_letter_once():
    assert History().send(1).give(1, rejected=True).give(1, to=DEAD_LETTERS).wrong == []
    assert History().send(1).give(1, rejected=True).wrong == [ViolationKind.LOST]
    assert History().send(1).give(1, rejected=True).give(1, 1, to=DEAD_LETTERS, settled=False).wrong == [
        ViolationKind.DUPLICATE
    ]


def test_what_is_rejected_and_that_was_not_confirmed_is_a_dead_letter_or_comes_again_flagged():
    history = History().send(1).give(1, rejected=True, settled=False)
    assert history.give(1, to=Y, flagged=True, rejected=True).give(1, to=DEAD_LETTERS).wrong == []
    history = History().send(1).give(1, rejected=True, settled=False)
    assert history.give(1, to=Y, rejected=True).give(1, to=DEAD_LETTERS).wrong == [ViolationKind.DUPLICATE]
    assert History().send(1).give(1, rejected=True, settled=False).give(1, to=DEAD_LETTERS).wrong == []


def test_a_dead_letter_comes_no_more_where_it_died_and_was_not_acknowledged_there():
    history = History().send(1).give(1, rejected=True, settled=False).give(1, to=DEAD_LETTERS)
    history.now += IN_TRANSIT_SECONDS
    assert history.give(1, to=Y, flagged=True).wrong == [ViolationKind.REDELIVERED_AFTER_ACK]
    history = History().send(1).give(1, rejected=True, settled=False).give(1, to=Y, flagged=True)
    assert history.give(1, to=DEAD_LETTERS).wrong == [ViolationKind.DEAD_LETTERED_AFTER_ACK]


def test_what_nobody_rejected_is_no_dead_letter():
    assert History().send(1).give(1).give(1, to=DEAD_LETTERS).wrong == [
        ViolationKind.DEAD_LETTERED_AFTER_ACK,
        ViolationKind.UNKNOWN,
    ]


def test_what_nobody_sent_or_sent_elsewhere_does_not_come():
    assert History().give(1).wrong == [ViolationKind.UNKNOWN]
    assert History().send(1, places=("out",), confirmed=False).give(1).wrong == [ViolationKind.UNKNOWN]


def test_what_is_missing_and_what_is_not_settled_is_known():
    history = History().send(1, 2, 3).give(1).give(2, settled=False)
    assert history.ledger.missing() == [("q", "m3")]
    assert history.ledger.unsettled() == 1
    assert history.give(2, flagged=True).ledger.unsettled() == 0
    numbers = history.ledger.numbers()
    assert tuple(numbers[each] for each in ("sent", "deliveries", "redelivered", "duplicates")) == (3, 3, 1, 1)
