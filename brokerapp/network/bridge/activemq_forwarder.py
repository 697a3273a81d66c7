"""Forward messages to an ActiveMQ in transactions, each with a record of what is in it.

ActiveMQ gives message-ids itself: it cannot know what it is sent again after a link broke. So each transaction also
puts a record, one message with the ids of the others, into a queue of the bridge's own. A bridge that begins reads what
records there are; what they name was committed, and is acknowledged without being sent again when the source gives it
once more. A record is taken away, in a later transaction, when the source has stored that it forgot all it names.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

from brokerapp.model.broker_path import RECORD_QUEUE_PREFIX
from brokerapp.network.bridge.forwarder import ForwardedMessage, ignore_done
from brokerapp.network.links.bridge_link import BridgeLink
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.network.links.sockets import CONNECT_SECONDS
from brokerapp.stomp.frames import Frame

logger = logging.getLogger(__name__)

#: Messages and bytes of one transaction: ActiveMQ holds them in memory until it is committed.
MAX_MESSAGES, MAX_BYTES = 100, 1024 * 1024
#: Records that are kept. Of more the oldest go, though the source never gave again what they name: it went another way
#: there. ActiveMQ shows a browser 400 messages of a queue.
MAX_RECORDS = 200
_BROWSER, _CONSUMER = "records-browser", "records"


@dataclass(slots=True)
class _ForwardRecord:
    """The record of the messages that one transaction forwarded."""

    unforgotten_ids: set[str]  #: ids that the source may still give again
    ack: str = ""  #: by which it can be taken away, once ActiveMQ has given it


@dataclass(slots=True)
class _ForwardTransaction:
    """A transaction that is being filled, or committed."""

    name: str
    messages: dict[str, ForwardedMessage] = field(default_factory=dict)  #: by ack
    unanswered: set[str] = field(default_factory=set)  #: acks of those that ActiveMQ may still refuse


class TransactionalForwarder:
    """Passes on in transactions, one at a time."""

    confirms_all = True

    def __init__(self, target: BridgeLink, prefix: str, broker: str, connector: str) -> None:
        self.on_done: Callable[[Sequence[str], str | None], None] = ignore_done
        self._target, self._prefix = target, prefix
        self._queue = f"/queue/{RECORD_QUEUE_PREFIX}{quote(broker, safe='')}.{quote(connector, safe='')}"
        self._unsent: deque[ForwardedMessage] = deque()
        self._transaction: _ForwardTransaction | None = None
        self._scheduled = False
        self._records: dict[str, _ForwardRecord] = {}  # by the name of their batch, the oldest first
        self._committed_by_id: dict[str, str] = {}  # id -> record, of what was committed before this bridge began
        self._pending_acks: dict[str, tuple[str, Sequence[str]]] = {}  # receipt -> record, ids
        self._numbers = itertools.count(1)

    async def open(self) -> None:
        """Read the records of bridges before. Raises LinkLost when they cannot be read."""
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def browsed(frame: Frame) -> None:
            if frame.headers.get("browser") == "end":
                ended.set_result("")
            else:
                self._read_record(frame)

        def refused(frame: Frame) -> None:
            if not ended.done():
                ended.set_result(frame.headers.get("message", "refused"))

        self._target.on_error = refused
        self._target.subscribe(_BROWSER, self._queue, browsed, {"ack": "auto", "browser": "true"})
        await asyncio.wait({ended, self._target.lost}, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done() or ended.result():
            why = ended.result() if ended.done() else "no answer"
            raise BridgeConnectionLost(
                f"{self._queue}, where the bridge records forwarded messages, cannot be read: {why}"
            )
        self._target.unsubscribe(_BROWSER)
        self._target.subscribe(_CONSUMER, self._queue, self._read_record, {"ack": "client-individual"})

    def _read_record(self, frame: Frame) -> None:
        """A record, as browsed or to be taken away."""
        try:
            told = json.loads(frame.body)
            name, ids = str(told["batch"]), [str(each) for each in told["ids"]]
        except (ValueError, TypeError, KeyError):
            logger.warning("%s: %s does not contain a record of this bridge", self._target.name, self._queue)
            return
        if name not in self._records:
            self._records[name] = _ForwardRecord(set(ids))
            self._committed_by_id.update(dict.fromkeys(ids, name))
        self._records[name].ack = frame.headers.get("ack", "")

    def send(self, message: ForwardedMessage) -> None:
        """With what else comes in this tick; what was committed before is done with."""
        record = self._committed_by_id.pop(message.id, None)
        if record is not None:
            self._acknowledge([message.ack], record, [message.id])
            return
        self._unsent.append(message)
        self._schedule()

    def _schedule(self) -> None:
        if self._unsent and self._transaction is None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_transaction)

    def _begin_transaction(self) -> None:
        """Pass on what waits, as much as fits into a transaction."""
        self._scheduled = False
        batch = self._transaction = _ForwardTransaction(uuid4().hex)
        size = 0
        while self._unsent and len(batch.messages) < MAX_MESSAGES and size < MAX_BYTES:
            message = self._unsent.popleft()
            batch.messages[message.ack] = message
            size += len(message.outgoing.body)
        within = {"transaction": batch.name}
        batch.unanswered.update(batch.messages)
        self._target.send("BEGIN", within)
        for each in batch.messages.values():
            headers = {**each.outgoing.headers, **within, "receipt": self._prefix + each.ack}
            self._target.send("SEND", headers, each.outgoing.body)

    def _on_answer(self, batch: _ForwardTransaction, ack: str) -> None:
        """ActiveMQ took a message, or not. The record must name none that it refused: commit when all are answered."""
        batch.unanswered.discard(ack)
        if batch.unanswered:
            return
        within = {"transaction": batch.name}
        ids = [each.id for each in batch.messages.values() if each.needs_receipt]
        if ids:
            self._remove_records(within)
            record = json.dumps({"batch": batch.name, "ids": ids}).encode()
            self._records[batch.name] = _ForwardRecord(set(ids))
            self._target.send("SEND", {"destination": self._queue, "persistent": "true", **within}, record)
        self._target.send("COMMIT", {**within, "receipt": self._prefix + batch.name})

    def _remove_records(self, within: dict[str, str]) -> None:
        """Remove records that nobody needs any more, and the oldest when they are too many."""
        surplus = len(self._records) - MAX_RECORDS
        for number, (name, record) in enumerate(list(self._records.items())):
            if record.ack and (not record.unforgotten_ids or number < surplus):
                self._target.send("ACK", {"id": record.ack, **within})
                del self._records[name]

    def on_receipt(self, receipt: str) -> None:
        """Of a SEND: ActiveMQ took it. Of a COMMIT: all in it is done with. Of an ACK at the source: that is stored."""
        if receipt in self._pending_acks:
            name, ids = self._pending_acks.pop(receipt)
            if (record := self._records.get(name)) is not None:
                record.unforgotten_ids.difference_update(ids)
        elif self._transaction is not None and receipt in self._transaction.unanswered:
            self._on_answer(self._transaction, receipt)
        elif self._transaction is not None and receipt == self._transaction.name:
            batch, self._transaction = self._transaction, None
            ids = [each.id for each in batch.messages.values() if each.needs_receipt]
            self._acknowledge(list(batch.messages), batch.name, ids)
            self._schedule()

    def _acknowledge(self, acks: Sequence[str], record: str, ids: Sequence[str]) -> None:
        """The source may forget these; when it has stored that, their record is not needed for them."""
        if not acks:
            return
        receipt = f"forgotten-{next(self._numbers)}"
        self._pending_acks[receipt] = record, ids
        self.on_done(acks, self._prefix + receipt)

    def on_refused(self, receipt: str) -> str | None:
        """One message of the transaction, which is committed without it, or the transaction."""
        if self._transaction is None or receipt not in self._transaction.unanswered:
            return None
        ack = self._transaction.messages.pop(receipt).ack
        self._on_answer(self._transaction, ack)
        return ack
