"""Broker: what clients ask, decided with the engine and handed to the committer. Synchronous; nothing here waits.

The way of a message: `send` routes it and submits a unit; when the store has it, `_stored` offers its copies to the queues and
topics it reached; `delivery.py` gives them to consumers; `settle` submits their removal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from brokerapp.actions import Abort, Begin, Commit, Send, Settle, Subscribe, Unsubscribe
from brokerapp.client import MAX_TRANSACTIONS, Client, Placed, Transaction
from brokerapp.committer import Committer
from brokerapp.definitions import Definitions
from brokerapp.delivery import Delivery, is_queue
from brokerapp.destination import Destination, Kind
from brokerapp.engine.access import Access
from brokerapp.engine.dead_letters import DEFAULT_STRATEGY, dead_letter, dead_letter_destination
from brokerapp.engine.message_log import Entry, MessageLog, Subscription
from brokerapp.engine.routing import Route, route
from brokerapp.engine.topology import Topology
from brokerapp.errors import AccessDenied, InvalidDestination, LimitExceeded, ProtocolError, RequestRefused
from brokerapp.message import Copy, Message, escape
from brokerapp.queues import Queues
from brokerapp.recording.recorder import Recorder
from brokerapp.recording.schema import DEAD_LETTER, DROP, EXPIRE, FORWARD, REDELIVER
from brokerapp.selectors import compile_selector
from brokerapp.snapshot import DestinationStats
from brokerapp.stats import Stats
from brokerapp.store import Unit

#: What ActiveMQ lets a consumer hold unacknowledged when nobody says otherwise.
DEFAULT_PREFETCH = {Kind.QUEUE: 1000, Kind.TOPIC: 32767}
#: Longest name of a destination, characters: it is part of a key of the store.
MAX_NAME = 1024


class Group:
    """Queues that get a copy of the same message, each once: as the broker, the store and the recorder name them."""

    __slots__ = ("logs", "names", "rows")

    def __init__(self) -> None:
        self.logs: list[MessageLog] = []
        self.rows: list[tuple[str, str, str]] = []  #: name, original and shown destination, see Unit
        self.names: list[str] = []

    def add(self, log: MessageLog, copy: Copy) -> None:
        """One queue more."""
        self.logs.append(log)
        self.names.append(log.name)
        original, shown = (each.stomp if each else "" for each in (copy.original, copy.shown))
        self.rows.append((log.name, original, shown))


class Broker:
    """One node's view of the broker. `session` tells this run of the node from all others; message-ids begin with it."""

    def __init__(
        self, name: str, session: str, committer: Committer, recorder: Recorder, stats: Stats, definitions: Definitions
    ) -> None:
        self.name, self.session = name, session
        self.stats, self.recorder = stats, recorder
        self.delivery = Delivery(committer, recorder, stats, self._expired, self._may_read)
        self.queues = Queues(committer, self.delivery, stats, self._may_read)
        self.queues.topology = self.topology = Topology(definitions, self._interest)
        self.access: Access | None = None  #: None: everybody may do everything
        self.clients: dict[str, Client] = {}
        self._client_ids: set[str] = set()
        self._committer = committer
        self._id_prefix = f"ID:{name}-{session}:"
        self._escaped_prefix = escape(self._id_prefix)
        self._messages = 0

    def redefine(self, definitions: Definitions) -> None:
        """Route by these from now on. What is on its way keeps the way it was given."""
        self.queues.topology = self.topology = Topology(definitions, self._interest, self.topology.queues)

    def _interest(self, queue: Destination, headers) -> bool:
        """Whether a consumer of the queue would take such a message (selectorAware)."""
        try:
            consumers = self.queues[str(queue)].consumers
        except KeyError:
            return False
        headers = {**headers, "destination": queue.stomp}
        return any(each.selector is None or each.selector.matches(headers) for each in consumers)

    def measure(self, numbers: DestinationStats) -> None:
        """Bring those numbers up to date that are kept elsewhere."""
        destination = numbers.destination
        if destination.kind is Kind.TOPIC:
            numbers.ConsumerCount = len(self.delivery.subscribers(destination.name))
        elif destination in self.queues:  # a composite that only forwards has numbers, but no messages of its own
            log = self.queues.find(destination)
            numbers.QueueSize, numbers.InFlightCount, numbers.Paused = log.depth, log.in_flight, log.paused

    def delete(self, log: MessageLog) -> None:
        """Remove an empty queue that has no consumers and nothing on its way."""
        self.queues.delete(log)
        self._forget_producers(log.destination)

    def delete_topic(self, topic: Destination) -> None:
        """Remove a topic that has no subscribers."""
        self.stats.forget(topic)
        self._forget_producers(topic)

    def _forget_producers(self, destination: Destination) -> None:
        for client in self.clients.values():
            client.producing_to.discard(destination)

    # -- clients

    def connect(self, client: Client) -> None:
        """A client is there. Raises ProtocolError when another one has its client id: the newcomer must go."""
        if client.client_id in self._client_ids:
            raise ProtocolError(f"client-id {client.client_id!r} is connected already")
        self._client_ids.add(client.client_id)
        self.clients[client.id] = client

    def disconnect(self, client: Client) -> None:
        """A client is gone: its transactions end in nothing, what it held goes back."""
        if self.clients.pop(client.id, None) is None:
            return
        self._client_ids.discard(client.client_id)
        for name in list(client.transactions):
            self._roll_back(client, client.transactions.pop(name))
        for subscription in list(client.subscriptions.values()):
            self._end(client, subscription)
        for destination in client.producing_to:
            self._count_producer(destination, -1)  # none of these is deleted: see _forget_producers

    def leave(self, client: Client, receipt: str | None, then: Callable[[], None]) -> None:
        """A client says good-bye: it goes when all that it asked before is done."""
        self._barrier(client, receipt, then)

    def _count_producer(self, destination: Destination, change: int) -> None:
        stats = self.stats.of(destination)
        stats.ProducerCount += change
        self.stats.changed.add(stats)

    def _require(self, client: Client, verb: str, destination: Destination) -> None:
        """Raise AccessDenied unless the client may; to be the first at a queue it must also be allowed to create it."""
        assert self.access is not None
        may, verbs = self.access.may, [verb]
        if destination.is_pattern and verb == "read":
            may = self.access.may_some  # it is given what it may read
        elif destination.kind is Kind.QUEUE and destination not in self.queues:
            verbs.append("admin")
        for each in verbs:
            if not may(client.principal, each, destination):
                raise AccessDenied(f"user {client.principal.name} is not authorized to {each} {destination}")

    def _may_read(self, subscription: Subscription, destination: Destination) -> bool:
        return self.access is None or self.access.may(subscription.client.principal, "read", destination)

    # -- sending

    def send(self, client: Client, send: Send) -> None:
        """Publish. Raises RequestRefused; the receipt follows when the message is stored."""
        transaction = client.transaction(send.transaction) if send.transaction is not None else None
        message = self._message(send)
        targets = destinations(send.destination)
        if self.access is not None:
            for each in targets:
                self._require(client, "write", each)
        placed = [self._place(client, message, each) for each in targets]
        client.sent += 1
        if transaction is None:
            self._submit(client, placed, (), send.receipt)
            return
        size = sum(len(each.stored) for each in placed)
        client.check_room(transaction, size)
        transaction.placed += placed
        transaction.bytes += size
        self._confirm(client, send.receipt)

    def _message(self, send: Send) -> Message:
        now_us = time.time_ns() // 1000
        self._messages += 1
        number = self._messages
        timestamp = now_us // 1000 if send.timestamp is None else send.timestamp
        persistent = "persistent:true\n" if send.persistent else ""
        head = (
            f"message-id:{self._escaped_prefix}{number}\nexpires:{send.expires}\npriority:{send.priority}\ntimestamp:{timestamp}\n"
            f"{persistent}{send.properties}"
        )
        id = f"{self._id_prefix}{number}"
        return Message(id, head.encode(), send.body, send.persistent, send.priority, send.expires, now_us)

    def _place(self, client: Client, message: Message, destination: Destination) -> Placed:
        """Find the message's way, and let the queues on it exist."""
        self.recorder.enqueue(message.born_us, message, str(destination))
        if destination not in client.producing_to:
            client.producing_to.add(destination)
            self._count_producer(destination, 1)
        found = route(message, destination, self.topology)
        if found.groups is None:
            found.groups = self._groups(found)
        return Placed(message, message.stored() if found.groups else b"", destination, found)

    def _groups(self, found: Route) -> list[Group]:
        """The queues of a route, which exist from now on, in groups of which none has a queue twice."""
        groups: list[Group] = []
        for copy in found.queues:
            log = self.queues.ensure(copy.destination)
            group = next((each for each in groups if log not in each.logs), None)
            if group is None:
                groups.append(group := Group())
            group.add(log, copy)
        return groups

    def _submit(
        self,
        client: Client,
        placed: Sequence[Placed],
        settled: Sequence[tuple[Subscription, str, Entry]],
        receipt: str | None,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Let it happen, all or nothing; then tell the client if it asked."""
        appends = [(each.stored, group.rows) for each in placed for group in each.route.groups]
        stored = [entry for _, _, entry in settled if entry.seq]
        if not appends and not stored and not client.pending:
            self._happened(placed, 0)
            self._confirm(client, receipt)
            return

        size = sum(len(each.stored) for each in placed)

        def done(seq: int, was_refused: bool) -> None:
            client.ended_unit(size)
            if not was_refused:
                self._happened(placed, seq)
                self._confirm(client, receipt)
                return
            if refused is not None:
                refused()
            self._refuse(client, LimitExceeded(f"the broker's store is full: nothing of this was kept{_named(placed)}"), receipt)

        client.started_unit(size)
        self._committer.submit(Unit(appends, stored, done=done))

    def _happened(self, placed: Sequence[Placed], seq: int) -> None:
        for each in placed:
            for group in each.route.groups:
                self._stored(each, group, seq)
                seq += 1
            for copy in each.route.topics:
                self.delivery.publish(each.message, copy)

    def _stored(self, placed: Placed, group: Group, seq: int) -> None:
        """The store holds these copies: count them, and offer them to those who consume now."""
        message, size, body_size = placed.message, len(placed.stored), len(placed.message.body)
        payload = seq if len(group.logs) > 1 else 0
        touched, changed = self.delivery.touched, self.stats.changed
        for log, (name, original, shown) in zip(group.logs, group.rows, strict=True):
            counts = log.counts
            counts.EnqueueCount += 1
            counts.EnqueueBytes += body_size
            changed.add(counts)
            if log.consumers:
                log.offer(Entry(name, seq, message, payload, size, original, shown))
                touched[log] = None
            else:
                log.offer_unseen()
        self.recorder.copies(FORWARD, message.born_us, message, str(placed.destination), group.names)

    # -- consuming

    def subscribe(self, client: Client, subscribe: Subscribe) -> None:
        """Consume. Raises RequestRefused; messages follow the receipt."""
        if subscribe.browser:
            raise RequestRefused("browser:true is not served yet: browse with the console or brokerctl")
        if "subscriptionName" in subscribe.options:
            raise RequestRefused("activemq.subscriptionName: durable subscriptions are not served yet")
        targets = destinations(subscribe.destination)
        if self.access is not None:
            for each in targets:
                self._require(client, "read", each)
        selector = compile_selector(subscribe.selector) if subscribe.selector else None
        name = subscription_name(subscribe.id, subscribe.destination)
        if (old := client.subscriptions.get(name)) is not None:
            self._end(client, old)
        client.keys += 1
        subscription = Subscription(
            subscribe.id, name, str(client.keys), client, targets, subscribe.ack_mode,
            self._prefetch(targets[0], subscribe.options.get("prefetchSize")), selector,
        )  # fmt: skip
        client.subscriptions[name] = client.by_key[subscription.key] = subscription
        for target in targets:
            if target.kind is Kind.QUEUE:
                self.queues.join(subscription, target)
            else:
                self.delivery.join(subscription, target)
                self._note_subscribers(target)

        def start() -> None:
            subscription.started = True
            for log in subscription.logs:
                self.delivery.touched[log] = None

        self._barrier(client, subscribe.receipt, start)

    def _prefetch(self, destination: Destination, asked: str | None) -> int:
        if asked is not None:
            if not asked.strip().isdecimal():
                raise RequestRefused(f"activemq.prefetchSize:{asked[:40]} is not a whole number")
            return int(asked)
        policy = self.topology.policy_for(destination)
        default = policy and (policy.queue_prefetch if destination.kind is Kind.QUEUE else policy.topic_prefetch)
        return DEFAULT_PREFETCH[destination.kind] if default is None else default

    def unsubscribe(self, client: Client, unsubscribe: Unsubscribe) -> None:
        """End a subscription; what it holds goes back. Raises RequestRefused."""
        name = subscription_name(unsubscribe.id, unsubscribe.destination)
        subscription = client.subscriptions.get(name)
        if subscription is None:
            raise RequestRefused(f"no subscription matched {name!r}")
        self._end(client, subscription)
        self._barrier(client, unsubscribe.receipt)

    def _end(self, client: Client, subscription: Subscription) -> None:
        if client.subscriptions.get(subscription.name) is subscription:
            del client.subscriptions[subscription.name]
        client.by_key.pop(subscription.key, None)
        held = subscription.unacked.values()
        now_us = time.time_ns() // 1000
        for entry in held:
            self._record(REDELIVER, now_us, entry, client.client_id, "consumer gone")
            if not is_queue(entry):
                self.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1
        self.queues.part(subscription)
        for target in subscription.destinations:
            if target.kind is Kind.TOPIC:
                self.delivery.part(subscription, target)
                self._note_subscribers(target)

    def _note_subscribers(self, target: Destination) -> None:
        """Those of a topic, or of all that match a pattern, are others now."""
        names = [target] if not target.is_pattern else [d for d in self.stats.known() if d.kind is Kind.TOPIC]
        self.stats.changed.update(map(self.stats.of, names))

    # -- settling

    def settle(self, client: Client, settle: Settle) -> None:
        """ACK or NACK. Raises RequestRefused when the client does not hold the message."""
        subscription, key = client.held(settle.ack_id, settle.subscription)
        if not settle.accepted:
            if settle.transaction is not None:
                raise RequestRefused("a NACK cannot be part of a transaction")
            self._reject(client, subscription, key)
            self._barrier(client, settle.receipt)
            return
        transaction = client.transaction(settle.transaction) if settle.transaction is not None else None
        if transaction is not None:
            client.check_room(transaction)
        settled = _take(subscription, key)
        subscription.credit += len(settled)
        self.resume(subscription)
        if transaction is not None:
            transaction.settled += settled
            self._confirm(client, settle.receipt)
            return
        self._account(settled)
        if settle.receipt is not None:
            self._submit(client, (), settled, settle.receipt)
            return
        for _, _, entry in settled:
            if entry.seq:
                self._committer.settle(entry)

    def resume(self, subscription: Subscription) -> None:
        """It may be given messages again."""
        for log in subscription.logs:
            self.delivery.touched[log] = None
        if subscription.pending:
            self.delivery.waiting[subscription] = None

    def _account(self, settled: Sequence[tuple[Subscription, str, Entry]]) -> None:
        now_us = time.time_ns() // 1000
        for subscription, _, entry in settled:
            if is_queue(entry):
                self.delivery.account_ack(self.queues[entry.log], entry, subscription.client.client_id, now_us)
            else:
                self.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1
                self.delivery.account_topic_ack(subscription, entry, now_us)

    def _reject(self, client: Client, subscription: Subscription, key: str) -> None:
        """One message failed: it goes to the dead letters at once, as in ActiveMQ."""
        entry = subscription.unacked.pop(key)
        subscription.credit += 1
        self.resume(subscription)
        if is_queue(entry):
            self._fail(self.queues[entry.log], entry, f"rejected by {client.client_id} (NACK)", client.client_id)
        else:
            self.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1

    def _expired(self, log: MessageLog, entry: Entry) -> None:
        log.counts.ExpiredCount += 1
        self._record(EXPIRE, time.time_ns() // 1000, entry, None, None)
        self._fail(log, entry, "expired", None, expired=True)

    def _fail(self, log: MessageLog, entry: Entry, cause: str, consumer: str | None, *, expired: bool = False) -> None:
        """Move a message in flight to where its policy sends dead letters, in one step; or drop it."""
        now_us = time.time_ns() // 1000
        policy = self.topology.policy_for(log.destination)
        strategy = (policy and policy.dead_letter) or DEFAULT_STRATEGY
        target = dead_letter_destination(strategy, log.destination, entry.message, expired=expired)
        self._record(DROP if target is None else DEAD_LETTER, now_us, entry, consumer, cause)
        log.settled(entry)
        log.counts.DequeueCount += 1
        self.stats.changed.add(log.counts)
        if target is None:
            self._committer.settle(entry)
            return
        log.counts.DeadLetterCount += 1
        message = dead_letter(entry.message, log.destination, cause, strategy, now_us // 1000)
        found = route(message, target, self.topology)
        if found.groups is None:
            found.groups = self._groups(found)
        for group in found.groups:
            for each in group.logs:
                each.counts.DLQ = True
        placed = Placed(message, message.stored(), target, found)
        appends = [(placed.stored, group.rows) for group in found.groups]

        self._committer.submit(Unit(appends, [entry], True, lambda seq, _refused: self._happened([placed], seq)))

    def _record(self, kind: int, now_us: int, entry: Entry, consumer: str | None, reason: str | None) -> None:
        original = entry.original or entry.message.headers.get("original-destination") or ""
        sent_to = str(Destination.parse(original)) if original else entry.log
        self.recorder.event(kind, now_us, entry.message, entry.log, sent_to, consumer, reason)

    # -- transactions

    def begin(self, client: Client, begin: Begin) -> None:
        """Open a transaction. Raises RequestRefused."""
        if begin.transaction in client.transactions:
            raise RequestRefused(f"the transaction {begin.transaction!r} is open already")
        if len(client.transactions) >= MAX_TRANSACTIONS:
            raise RequestRefused(f"at most {MAX_TRANSACTIONS} transactions may be open")
        client.transactions[begin.transaction] = Transaction()
        self._confirm(client, begin.receipt)

    def commit(self, client: Client, commit: Commit) -> None:
        """All that was done in the transaction happens, or the client gets an ERROR and nothing does."""
        transaction = client.transaction(commit.transaction)
        del client.transactions[commit.transaction]
        self._account(transaction.settled)
        for each in transaction.placed:
            if any(log.destination not in self.queues for group in each.route.groups for log in group.logs):
                each.route.groups = self._groups(each.route)  # a queue was deleted since: it comes to exist again

        def refused() -> None:
            for _, _, entry in transaction.settled:
                if is_queue(entry) and (log := self.queues[entry.log]):
                    log.depth += 1
                    log.in_flight += 1
            self.queues.take_back(entry for _, _, entry in transaction.settled if is_queue(entry))

        self._submit(client, transaction.placed, transaction.settled, commit.receipt, refused)

    def abort(self, client: Client, abort: Abort) -> None:
        """Nothing of it happens: what was acked in it waits for an ack again, with the same ids."""
        transaction = client.transaction(abort.transaction)
        del client.transactions[abort.transaction]
        self._roll_back(client, transaction)
        self._barrier(client, abort.receipt)

    def _roll_back(self, client: Client, transaction: Transaction) -> None:
        held: dict[Subscription, dict[str, Entry]] = {}
        homeless: list[Entry] = []
        for subscription, key, entry in transaction.settled:
            if client.by_key.get(subscription.key) is subscription:
                held.setdefault(subscription, {})[key] = entry
            elif is_queue(entry):
                homeless.append(entry)
            else:
                self.stats.of(Destination.parse(entry.shown)).InFlightCount -= 1
        for subscription, entries in held.items():
            subscription.hold_again(entries)
        self.queues.take_back(homeless)

    # -- telling the client

    def _barrier(self, client: Client, receipt: str | None, then: Callable[[], None] | None = None) -> None:
        """Confirm, after all that the client asked before is done."""

        def done(_seq: int = 0, _refused: bool = False) -> None:
            client.ended_unit()
            self._confirm(client, receipt)
            if then is not None:
                then()

        client.started_unit()
        if client.pending > 1 or self._committer.busy:
            self._committer.submit(Unit(done=done))
        else:
            done()

    def _confirm(self, client: Client, receipt: str | None) -> None:
        if receipt is not None:
            client.sink.receipt(receipt)
            self.delivery.dirty[client] = None

    def _refuse(self, client: Client, error: RequestRefused, receipt: str | None) -> None:
        client.sink.refuse(error, receipt)
        self.delivery.dirty[client] = None


def subscription_name(id: str | None, destination: str | None) -> str:
    """What tells a client's subscriptions apart: the id it gave, or else the destination."""
    return id if id is not None else str(destination)


@lru_cache(maxsize=16384)
def destinations(text: str) -> tuple[Destination, ...]:
    """One destination, or a list (`/queue/A,/topic/B`): each element of its own kind, a queue when it has no prefix."""
    found = [Destination.parse(part) for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidDestination(text)
    for each in found:
        if len(each.name) > MAX_NAME:
            raise InvalidDestination(text[:80], f"a name has at most {MAX_NAME} characters")
        if each.name.startswith("/temp-") or each.name.startswith("/remote-temp-"):
            raise InvalidDestination(each.name, "temporary destinations are not served yet")
    return tuple(dict.fromkeys(found))


def _take(subscription: Subscription, key: str) -> list[tuple[Subscription, str, Entry]]:
    """What an ACK settles: in mode `client` all up to the message, else the one."""
    if subscription.ack_mode != "client":
        return [(subscription, key, subscription.unacked.pop(key))]
    taken = []
    for each in subscription.unacked:
        taken.append(each)
        if each == key:
            break
    return [(subscription, each, subscription.unacked.pop(each)) for each in taken]


def _named(placed: Sequence[Placed]) -> str:
    return " (" + ", ".join(str(each.destination) for each in placed[:5]) + ")" if placed else ""
