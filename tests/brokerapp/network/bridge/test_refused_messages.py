"""Test the order in which messages of a destination are forwarded while some are refused."""

import pytest

from brokerapp.network.bridge import refused_messages
from brokerapp.network.bridge.forwarder import ForwardedMessage
from brokerapp.network.bridge.refused_messages import (
    LONGEST_RETRY_SECONDS,
    MAX_HELD,
    PAUSE_SECONDS,
    RETRY_SECONDS,
    MessageInTransit,
    RefusedMessages,
)
from brokerapp.network.links.broker_link import OutgoingMessage


class Way:
    """What is passed on over it, and what is to be done later; messages are called by numbers."""

    def __init__(self, prefetch=1_000):
        self.sent, self.due, self.open = [], [], {}
        self.trials = RefusedMessages(self._send, lambda seconds, call: self.due.append((seconds, call)), prefetch)

    def _send(self, passing):
        self.sent.append(passing.sequence)
        if passing.is_confirmed_by_target:
            self.open[passing.sequence] = passing
        else:
            self.trials.on_accepted(passing)  # at once

    def give(self, *numbers, destination="/queue/q", answered=True, size=1):
        for number in numbers:
            message = ForwardedMessage(
                str(number), f"{destination} {number}", OutgoingMessage({}, b""), needs_receipt=answered
            )
            passing = MessageInTransit(number, "out:1", destination, message, size, None, answered)
            if not self.trials.handle(passing):
                self._send(passing)

    def take(self, *numbers):
        for number in numbers:
            self.trials.on_accepted(self.open.pop(number))

    def refuse(self, *numbers):
        """Whether what is refused is held."""
        return [self.trials.on_refused(self.open.pop(number), self.open.values()) for number in numbers]

    def wait(self):
        """Until all is due that is to be done; how long the longest was."""
        due, self.due = self.due, []
        for _, call in due:
            call()
        return max(seconds for seconds, _ in due)

    @property
    def sent_since(self):
        sent, self.sent = self.sent, []
        return sent

    @property
    def aside(self):
        return [each.sequence for each in self.trials.held()]


@pytest.fixture
def way():
    return Way()


def test_what_is_refused_is_tried_again_alone_when_nothing_of_its_destination_is_on_its_way_and_all_else_waits(way):
    way.give(1, 2, 3)
    assert way.refuse(1) == [True]
    way.give(4, 5)
    way.give(6, destination="/queue/other")
    assert way.wait() == PAUSE_SECONDS
    assert way.sent_since == [1, 2, 3, 6]
    way.take(2)
    assert way.sent_since == []
    way.take(3)
    assert way.sent_since == [1]
    way.take(1)  # it had no room for a moment
    assert (way.sent_since, way.aside) == ([4, 5], [])


def test_what_is_refused_alone_waits_for_itself_and_all_else_crosses_in_order(way):
    way.give(1, 2, 3, 4)
    way.refuse(3, 1)  # both, in whatever order that is heard of
    way.take(2, 4)
    way.give(5, 6)
    way.wait()
    assert way.sent_since == [1, 2, 3, 4, 1]
    way.refuse(1)
    assert way.sent_since == [3]
    way.refuse(3)
    assert way.sent_since == [5]
    way.take(5)
    way.give(7)
    assert (way.sent_since, way.aside) == ([6, 7], [1, 3])


def test_what_is_aside_is_tried_again_later_and_later_until_it_is_taken(way):
    way.give(1, 2)
    way.refuse(1)
    way.take(2)
    way.wait()
    pauses = []
    for _ in range(6):
        way.refuse(1)
        pauses.append(way.wait())
    assert pauses == [RETRY_SECONDS, 10, 20, 40, LONGEST_RETRY_SECONDS, LONGEST_RETRY_SECONDS]
    way.take(1)
    way.give(3)
    assert (way.aside, way.sent[-1]) == ([], 3)


def test_when_nothing_of_a_destination_was_taken_and_then_something_is_all_is_tried_again_in_order(way):
    way.give(1, 2, 3)
    way.refuse(1, 2, 3)
    way.wait()
    way.refuse(1), way.refuse(2), way.refuse(3)
    assert way.aside == [1, 2, 3]
    way.sent.clear()
    way.due.pop(0)[1]()  # the first of them is due
    way.take(1)
    way.give(4)
    assert way.sent_since == [1, 2, 3, 4]
    way.wait()
    assert way.sent_since == [], "nothing is sent twice"


def test_what_nothing_is_answered_to_is_passed_on_in_its_order_and_proves_nothing(way):
    way.give(1)
    way.refuse(1)
    way.give(2, 3, answered=False)
    way.give(4)
    way.wait()
    assert way.sent_since == [1, 1]
    way.refuse(1)
    assert way.sent_since == [2, 3, 4]
    way.give(5)
    assert way.sent_since == []
    way.take(4)
    assert way.sent_since == [5]


@pytest.mark.parametrize("prefetch", [1_000, 3])
def test_with_too_many_aside_the_destination_waits(prefetch):
    way = Way(prefetch)
    most = min(MAX_HELD, prefetch - 1)
    way.give(*range(most + 1))
    way.refuse(*range(most + 1))
    way.wait()
    assert [way.refuse(number) for number in range(most + 1)] == [[True]] * most + [[False]]
    way.trials.end("out:1")
    way.sent.clear()
    way.wait()
    assert (way.sent, way.aside) == ([], []), "it is the source's again"


def test_with_too_many_bytes_aside_it_does_too(way, monkeypatch):
    monkeypatch.setattr(refused_messages, "MAX_HELD_BYTES", 10)
    way.give(1, size=10)
    way.give(2, destination="/queue/other", size=1)
    way.refuse(1), way.refuse(2)
    way.wait()
    assert (way.refuse(1), way.refuse(2)) == ([True], [False])


def test_what_nothing_is_answered_to_may_go_on_when_what_it_waited_for_is_taken(way):
    way.give(1)
    way.refuse(1)
    way.give(2, 3, answered=False)
    way.wait()
    way.take(1)
    way.give(4)
    assert way.sent_since == [1, 1, 2, 3, 4]


def test_what_is_never_taken_is_not_tried_whatever_else_is_taken(way):
    never = MessageInTransit(
        1,
        "out:1",
        "/queue/q",
        ForwardedMessage("1", "/queue/q 1", OutgoingMessage({}, b""), needs_receipt=True),
        1,
        None,
        is_confirmed_by_target=True,
    )
    assert way.trials.hold_permanently(never)
    way.give(2, 3)
    way.refuse(2)
    way.wait()
    assert way.sent_since == [2, 3], "3 is on its way still"
    way.take(3)
    way.refuse(2)
    way.wait()
    way.take(2)
    assert (way.sent_since, way.aside) == ([2, 2], [1])
    way.trials.end("out:1")
    assert way.aside == []


def test_however_often_what_is_aside_was_tried_meanwhile_one_more_try_is_due(way):
    way.give(1)
    way.refuse(1)
    way.wait()
    way.refuse(1)
    for number in range(2, 7):  # nothing is taken for a moment, then something is
        way.give(number)
        way.refuse(number)
        way.due.pop()[1]()
        way.refuse(number)
        way.due.pop()[1]()
        way.take(number)
        way.refuse(1)
    assert len(way.due) == 1
