"""A JMS client of a load, on OpenWire, that records in a ledger what it does and sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    IntegerResponse,
    LocalTransactionId,
    MessageAck,
    MessageDispatch,
    OpenWireDestination,
    RemoveInfo,
    Response,
    TransactionInfo,
    WireThrowable,
    XATransactionId,
)
from brokerapp.openwire.marshalled_values import Value, encode_map
from brokerapp.openwire.session.consumers import AckType
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.ledger.clients import now, number_of
from tests.ledger.ledger import ACKED, LEFT, REJECTED, RETURNED, Delivery, Ledger, Message, Span
from tests.protocol.openwire_client import OpenWireClient, queue, text_of, topic

#: Bytes of a text.
SIZE = 40


def openwire(place: str) -> OpenWireDestination:
    """A destination as commands name it."""
    kind, _, name = place.partition("://")
    return topic(name) if kind == "topic" else queue(name)


class LedgerJmsClient:
    """A connection with one session, a producer and at most one consumer. `places`: see Ledger.arrive."""

    def __init__(self, port: int, ledger: Ledger, name: str, places: Mapping[str, Sequence[str]]) -> None:
        self.ledger, self.name, self._places = ledger, name, places
        self._client = OpenWireClient(port, client_id=name)
        self._client.producer()
        self._transactions = 0
        self._open: LocalTransactionId | XATransactionId | None = None
        self._sent: list[Message] = []  # in the transaction that is open
        self._acked: list[Delivery] = []
        self._consumer: ConsumerId | None = None
        self._dispatches: dict[Delivery, MessageDispatch] = {}
        self.place = ""  #: where it consumes
        self.held: list[Delivery] = []

    # -- sending

    def send(self, to: str, count: int, properties: Mapping[str, Value] | None = None, **fields) -> list[Message]:
        """Send text messages, each when the one before was confirmed; in a transaction if one is open."""
        sent = []
        about = {"marshalled_properties": encode_map(dict(properties))} if properties else {}
        for _ in range(count):
            text = f"{len(self.ledger.messages)} ".ljust(SIZE, ".")
            headers = {name: str(value) for name, value in (properties or {}).items()}
            message = self.ledger.send(self.name, to, len(text), headers)
            before = now()
            command = self._client.message(openwire(to), text, transaction_id=self._open, **about, **fields)
            answer = self._client.ask(command)
            assert type(answer) is Response, answer
            message.born, message.id = Span(before, now()), str(command.message_id)
            if self._open is None:
                self.ledger.arrive([message], self._places, message.born)
            sent.append(message)
        self._sent += sent if self._open is not None else []
        return sent

    @contextmanager
    def transaction(self, *, commits: bool = True) -> Iterator[None]:
        """A transacted session's work: what is sent and acknowledged in it is committed at the end, or rolled back."""
        self._transactions += 1
        self._open = LocalTransactionId(self._transactions, ConnectionId(self._client.connection_id))
        self._end_with(TransactionOperation.BEGIN)
        yield
        before = now()
        self._end_with(TransactionOperation.COMMIT_ONE_PHASE if commits else TransactionOperation.ROLLBACK)
        span, sent, acked = Span(before, now()), self._sent, self._acked
        self._open, self._sent, self._acked = None, [], []
        if commits:
            begun = min([span.after, *(each.born.after for each in sent)])
            self.ledger.arrive(sent, self._places, Span(begun, span.before))
            self._settled(acked, ACKED, span)
        else:
            self.ledger.roll_back(sent, span)

    def _end_with(self, operation: TransactionOperation) -> None:
        info = TransactionInfo(
            connection_id=ConnectionId(self._client.connection_id), transaction_id=self._open, type=operation
        )
        assert type(self._client.ask(info)) in (Response, IntegerResponse)

    def prepare(self, deliveries: Sequence[Delivery]) -> XATransactionId:
        """Acknowledge these in a distributed transaction, and prepare it."""
        self._open = id = XATransactionId(1, self.name.encode(), b"1")
        self._end_with(TransactionOperation.BEGIN)
        before = now()
        self.ack(deliveries)
        self._end_with(TransactionOperation.PREPARE)
        self._open, self._acked = None, []
        self._settled(deliveries, ACKED, Span(before, now()))  # gone from the queue, until it may be rolled back
        return id

    def end_prepared(self, id: XATransactionId, taken: Sequence[Delivery], *, commits: bool) -> None:
        """End what another client prepared, in which it acknowledged these."""
        before = now()
        self._open = id
        self._end_with(TransactionOperation.COMMIT_TWO_PHASE if commits else TransactionOperation.ROLLBACK)
        self._open = None
        for each in () if commits else taken:
            each.is_undone, copy = True, each.copy
            span = Span(before, now())
            copy.successor = self.ledger.come(copy.message, copy.place, copy.original, span, RETURNED)

    # -- consuming

    def subscribe(self, place: str, prefetch: int = 1000, **fields) -> LedgerJmsClient:
        """Consume from a queue."""
        before = now()
        self.place = place
        self._consumer = self._client.consumer(1, openwire(place), prefetch, **fields)
        self.ledger.subscribed[place, self.name] = Span(before, now())
        return self

    def take(self, count: int) -> list[Delivery]:
        """The next messages."""
        return [self._taken(self._client.next(MessageDispatch)) for _ in range(count)]

    def _taken(self, dispatch: MessageDispatch) -> Delivery:
        number = number_of({}, (text_of(dispatch) or "").encode())
        delivery = self.ledger.give(number, self.place, self.name, now())
        delivery.copy.message.id = str(dispatch.message.message_id)
        self._dispatches[delivery] = dispatch
        self.held.append(delivery)
        return delivery

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge these, which follow each other, by one command; in a transaction if one is open."""
        before = now()
        first, last = (self._dispatches[deliveries[place]] for place in (0, -1))
        answer = self._client.ask(
            MessageAck(
                consumer_id=self._consumer, destination=last.destination, ack_type=AckType.STANDARD,
                first_message_id=first.message.message_id, last_message_id=last.message.message_id,
                message_count=len(deliveries), transaction_id=self._open,
            )
        )  # fmt: skip
        assert type(answer) is Response, answer
        if self._open is not None:
            self._acked += deliveries
        else:
            self._settled(deliveries, ACKED, Span(before, now()))

    def give_up(self, deliveries: Sequence[Delivery], cause: str) -> Span:
        """Tell that these failed too often, as a client does after its own redeliveries; what follows the load says."""
        reason = WireThrowable("java.lang.Throwable", cause)
        return self._reject(deliveries, AckType.POISON, poison_cause=reason)

    def find_expired(self, deliveries: Sequence[Delivery]) -> Span:
        """Tell that these had expired when their turn came; what follows the load says."""
        return self._reject(deliveries, AckType.EXPIRED)

    def _reject(self, deliveries: Sequence[Delivery], type: AckType, **fields) -> Span:
        before = now()
        for each in deliveries:
            self._client.acknowledge(self._dispatches[each], type, **fields)
        span = Span(before, now())
        self._settled(deliveries, REJECTED, span)
        return span

    def _settled(self, deliveries: Sequence[Delivery], how: str, span: Span) -> None:
        for each in deliveries:
            self.ledger.end(each, how, span)
            self.held.remove(each)

    def leave(self) -> Span:
        """Close the consumer, which gives back what it holds, and the connection."""
        before = now()
        if self._consumer is not None:
            self._client.ask(RemoveInfo(object_id=self._consumer))
        self._client.ask(RemoveInfo(object_id=ConnectionId(self._client.connection_id)))
        self._client.close()
        span = Span(before, now())
        self._settled(list(self.held), LEFT, span)
        if self.place:
            self.ledger.left[self.place, self.name] = span
        return span
