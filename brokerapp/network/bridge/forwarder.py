"""Forward messages to the target of a bridge, and say when the source may forget them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from brokerapp.network.links.broker_link import BrokerLink, OutgoingMessage


@dataclass(slots=True)
class ForwardedMessage:
    """A message on its way to the target."""

    ack: str  #: by which the source knows it
    id: str  #: what tells it from all others that pass through this bridge, however often it does
    outgoing: OutgoingMessage
    needs_receipt: bool  #: it must be confirmed


class Forwarder(Protocol):
    """Passes on in order. `done` is called with what the source may forget, and the receipt that is wanted of that."""

    on_done: Callable[[Sequence[str], str | None], None]
    confirms_all: bool  #: whether it hears of each message if it is taken, also of one that need not be confirmed

    def send(self, message: ForwardedMessage) -> None:
        """Forward a message, at once or with the next transaction."""

    def on_receipt(self, receipt: str) -> None:
        """A receipt of this outbox came, from the target or the source."""

    def on_refused(self, receipt: str) -> str | None:
        """The target refused this: of which message it was the SEND; None when it was more than one message's."""


def ignore_done(_acks: Sequence[str], _receipt: str | None) -> None:
    """Ignore that messages were forwarded."""


class ReceiptForwarder:
    """Each message with a receipt of its own, to a target that knows by its id what it got before."""

    confirms_all = False

    def __init__(self, target: BrokerLink, prefix: str) -> None:
        self.on_done: Callable[[Sequence[str], str | None], None] = ignore_done
        self._target, self._prefix = target, prefix

    def send(self, message: ForwardedMessage) -> None:
        """Forward a message at once."""
        if not message.needs_receipt:
            self._target.send(message.outgoing, None)
            self.on_done([message.ack], None)
            return
        self._target.send(message.outgoing, self._prefix + message.ack)

    def on_receipt(self, receipt: str) -> None:
        """The target has that message."""
        self.on_done([receipt], None)

    def on_refused(self, receipt: str) -> str | None:
        """Receipts are named after messages."""
        return receipt
