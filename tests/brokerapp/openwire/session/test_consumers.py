"""What consumers hold, and what acknowledgements name of it."""

import pytest

from brokerapp.errors import RequestRefused
from brokerapp.openwire.commands import ConsumerId, ConsumerInfo, MessageAck, MessageId, OpenWireDestination
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.session.consumers import LAST_DELIVERED_UNKNOWN, AckType, OpenWireConsumer

QUEUE = OpenWireDestination(t.QUEUE, "Q")


def id_of(sequence: int, number: int = 0) -> MessageId:
    """The id of a message of one producer, with the number of its delivery if it is known."""
    known = MessageId.parse(f"ID:host-1-2-3:4:5:6:{sequence}")
    return MessageId(known.text_view, known.producer_id, known.producer_sequence_id, number)


def consumer(count: int = 5, first: int = 1) -> OpenWireConsumer:
    """One that holds the messages 1 to `count`, delivered with the numbers from `first`."""
    made = OpenWireConsumer(ConsumerInfo(consumer_id=ConsumerId("ID:host", 1, 1), destination=QUEUE), QUEUE)
    sequences = range(1, count + 1)
    made.hold([str(id_of(each)) for each in sequences], [f"a{each}" for each in sequences], first, pulls=False)
    return made


def ack(type: AckType, first: MessageId | None, last: MessageId | None) -> MessageAck:
    return MessageAck(ack_type=type, first_message_id=first, last_message_id=last)


def taken(held: OpenWireConsumer, named: MessageAck) -> list[str]:
    return [each.ack_id for each in held.take(named)]


def test_a_range_takes_all_from_its_first_to_its_last_message():
    held = consumer(first=10)
    assert taken(held, ack(AckType.STANDARD, id_of(2, 11), id_of(4, 13))) == ["a2", "a3", "a4"]
    assert [each.ack_id for each in held.deliveries.values()] == ["a1", "a5"]


def test_a_range_without_a_first_message_begins_with_what_was_delivered_first():
    assert taken(consumer(), ack(AckType.STANDARD, None, id_of(3, 3))) == ["a1", "a2", "a3"]


def test_a_range_passes_over_what_was_acknowledged_by_itself_before():
    held = consumer()
    taken(held, ack(AckType.INDIVIDUAL, id_of(2, 2), id_of(2, 2)))
    assert taken(held, ack(AckType.STANDARD, id_of(1, 1), id_of(3, 3))) == ["a1", "a3"]


def test_an_individual_acknowledgement_takes_its_last_message_alone():
    assert taken(consumer(), ack(AckType.INDIVIDUAL, None, id_of(4, 4))) == ["a4"]


def test_messages_are_found_by_their_ids_where_the_number_is_of_another_connection():
    assert taken(consumer(first=40), ack(AckType.INDIVIDUAL, None, id_of(2, 41 + 3))) == ["a2"]


def test_copies_of_one_message_are_told_apart_by_their_numbers():
    held = consumer(1)
    held.hold([str(id_of(1))], ["copy"], 2, pulls=False)
    assert taken(held, ack(AckType.INDIVIDUAL, None, id_of(1, 2))) == ["copy"]
    assert taken(held, ack(AckType.INDIVIDUAL, None, id_of(1, 1))) == ["a1"]


@pytest.mark.parametrize(
    "named",
    [
        ack(AckType.STANDARD, id_of(9), id_of(9)),
        ack(AckType.STANDARD, id_of(9), id_of(3, 3)),
        ack(AckType.STANDARD, id_of(1, 1), id_of(9)),
        ack(AckType.INDIVIDUAL, None, None),
    ],
)
def test_what_is_not_held_cannot_be_acknowledged_and_nothing_else_is(named):
    held = consumer()
    with pytest.raises(RequestRefused, match="is not held by ID:host:1:1"):
        held.take(named)
    assert len(held.deliveries) == 5


def test_what_is_given_back_is_in_its_place_again():
    held = consumer()
    back = held.take(ack(AckType.STANDARD, id_of(2, 2), id_of(3, 3)))
    held.give_back(back)
    assert [each.ack_id for each in held.deliveries.values()] == ["a1", "a2", "a3", "a4", "a5"]


@pytest.mark.parametrize(
    ("last", "unseen"),
    [
        (LAST_DELIVERED_UNKNOWN, []),
        (-1, ["a1", "a2", "a3", "a4", "a5"]),
        (0, ["a1", "a2", "a3", "a4", "a5"]),
        (12, ["a3", "a4", "a5"]),
        (99, ["a1", "a2", "a3", "a4", "a5"]),
    ],
)
def test_only_what_the_application_saw_counts_as_delivered_when_a_consumer_is_closed(last, unseen):
    assert consumer(first=11).unseen(last) == unseen
