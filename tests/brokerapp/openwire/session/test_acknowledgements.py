"""What the session asks of the broker when a client acknowledges."""

import pytest

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import AckBatchCommand, GiveUpCommand, SendBatchCommand, WindowCommand
from brokerapp.openwire.commands import (
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    LocalTransactionId,
    MessageAck,
    MessageId,
    OpenWireDestination,
    TransactionInfo,
    WireThrowable,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.session.session import OpenWireSession
from brokerapp.openwire.session.transactions import TransactionOperation

CONNECTION = ConnectionId("ID:host")
CONSUMER = ConsumerId("ID:host", 1, 1)
NAME = str(CONSUMER)
TRANSACTION = LocalTransactionId(7, CONNECTION)


def session(kind: int = t.QUEUE, held: int = 3, *, pulls: bool = False) -> OpenWireSession:
    """One with a consumer that holds messages."""
    made = OpenWireSession(broker="here", node="", broker_ids=BrokerIds())
    made.receive(ConnectionInfo(connection_id=CONNECTION, client_id="c"))
    made.receive(ConsumerInfo(consumer_id=CONSUMER, destination=OpenWireDestination(kind, "Q"), prefetch_size=10))
    if held:
        numbers = range(1, held + 1)
        ids = [str(message_id(each)) for each in numbers]
        made.consumers[CONSUMER].hold(ids, [f"a{each}" for each in numbers], 1, pulls=pulls)
    return made


def message_id(number: int) -> MessageId:
    known = MessageId.parse(f"ID:host:1:1:{number}")
    return MessageId(known.text_view, known.producer_id, known.producer_sequence_id, number)


def ack(type: AckType, first: int, last: int, **fields) -> MessageAck:
    return MessageAck(
        consumer_id=CONSUMER, ack_type=type, first_message_id=message_id(first), last_message_id=message_id(last),
        **fields,
    )  # fmt: skip


def transaction(operation: TransactionOperation) -> TransactionInfo:
    return TransactionInfo(connection_id=CONNECTION, transaction_id=TRANSACTION, type=operation)


def test_the_receipt_of_a_range_belongs_to_its_last_message():
    [asked] = session().receive(ack(AckType.STANDARD, 1, 3, command_id=9, response_required=True))
    assert asked == AckBatchCommand(["a1", "a2", "a3"], None, [None, None, "9"], None)


@pytest.mark.parametrize(
    ("later", "is_one"),
    [
        (AckBatchCommand(["b"]), True),
        (AckBatchCommand(["b"], transaction="t"), False),
        (AckBatchCommand(["b"], receipts=["9"]), False),
        (AckBatchCommand(["b"], rejects=[True]), False),
        (SendBatchCommand([]), False),
        (WindowCommand(NAME, 1), False),
    ],
)
def test_acknowledgements_alike_that_follow_each_other_are_one_batch(later, is_one):
    batch = AckBatchCommand(["a"])
    assert batch.extend(later) is is_one
    assert batch.ack_ids == (["a", "b"] if is_one else ["a"])


def test_a_poison_acknowledgement_gives_messages_up_with_the_cause_as_java_writes_it():
    cause = WireThrowable("java.lang.Throwable", "Delivery[7] exceeds redelivery policy limit")
    [asked] = session().receive(ack(AckType.POISON, 1, 2, poison_cause=cause))
    assert asked == GiveUpCommand(
        ["a1", "a2"], "java.lang.Throwable: Delivery[7] exceeds redelivery policy limit", False, None
    )


def test_a_poison_acknowledgement_cannot_be_part_of_a_transaction():
    with pytest.raises(RequestRefused, match="poison"):
        session().receive(ack(AckType.POISON, 1, 1, transaction_id=TRANSACTION))


def test_what_a_client_found_expired_expires():
    assert session().receive(ack(AckType.EXPIRED, 1, 1)) == [GiveUpCommand(["a1"], None, True, None)]


@pytest.mark.parametrize("type", [AckType.REDELIVERED, AckType.UNMATCHED])
def test_what_a_client_of_a_queue_hands_out_again_or_does_not_want_stays_with_its_consumer(type):
    made = session()
    assert made.receive(ack(type, 1, 1)) == ()
    assert len(made.consumers[CONSUMER].deliveries) == 3


def test_what_a_subscriber_of_a_topic_does_not_want_is_done_with():
    assert session(t.TOPIC).receive(ack(AckType.UNMATCHED, 1, 1)) == [AckBatchCommand(["a1"], None, None, None)]


def test_the_window_grows_once_by_what_the_application_has_and_shrinks_by_what_it_acknowledges():
    made = session()
    assert made.receive(ack(AckType.DELIVERED, 2, 2)) == (WindowCommand(NAME, 2),)
    assert made.receive(ack(AckType.DELIVERED, 1, 2)) == ()
    narrowed, _ = made.receive(ack(AckType.STANDARD, 1, 3))
    assert narrowed == WindowCommand(NAME, -2)


def test_a_message_that_was_pulled_makes_no_room_for_another_one():
    narrowed, _ = session(pulls=True).receive(ack(AckType.STANDARD, 1, 1))
    assert narrowed == WindowCommand(NAME, -1)


def test_a_rollback_gives_back_what_was_acknowledged_and_widens_the_window_by_it():
    made = session()
    made.receive(ack(AckType.DELIVERED, 1, 3))
    made.receive(transaction(TransactionOperation.BEGIN))
    for number in 1, 2:
        made.receive(ack(AckType.STANDARD, number, number, transaction_id=TRANSACTION))
    assert list(made.consumers[CONSUMER].deliveries) == [3]
    aborted, *widened = made.receive(transaction(TransactionOperation.ROLLBACK))
    assert isinstance(aborted, SendBatchCommand)
    assert widened == [WindowCommand(NAME, 1), WindowCommand(NAME, 1)]
    assert list(made.consumers[CONSUMER].deliveries) == [1, 2, 3]


def test_acknowledgements_from_before_a_reconnect_are_passed_over_until_the_consumer_gets_messages():
    assert session(held=0).receive(ack(AckType.STANDARD, 1, 1)) == ()
