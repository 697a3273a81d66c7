"""Cluster: what a broker does because it is one of several: it lets the others in, hears them and tells them.

A part of the broker. What it decides by is in its own parts: `recording` (what operators made), `consumption` (what
clients here consume at the others), `lodging` (temporary destinations of the others).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.cluster.change_log import ChangeLog, ChangeTarget
from brokerapp.cluster.peer import ANSWER, ClusterPeer, ClusterPeerLink, Then
from brokerapp.cluster.record import ClusterChange, ClusterRecord
from brokerapp.cluster.remote_consumers import RemoteConsumers
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.cluster.settings import ClusterSettings, differences
from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.subscribe_options import subscription_identity
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.policy.authorization import ANONYMOUS
from brokerapp.errors import ProtocolError, RequestRefused
from brokerapp.model.commands import ClientCommand, ConnectCommand, SendCommand, SubscribeCommand, UnsubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker

logger = logging.getLogger(__name__)

#: How long a consumer of a durable subscription waits for one at another broker to leave, and how often it looks,
#: milliseconds: who changes brokers may be faster than the brokers' telling each other.
TAKEOVER_MS, TAKEOVER_STEP_MS = 1_000, 50


class Cluster:
    """One broker's view of it. `pump` asks for a pump of the broker at the end of this tick."""

    def __init__(
        self,
        broker: Broker,
        terms: ClusterSettings,
        record: ClusterRecord,
        configured: Iterable[Destination],
        applies: ChangeTarget,
        pump: Callable[[], None],
    ) -> None:
        self._broker, self.terms, self._change_target = broker, terms, applies
        self.peers = {each.name: ClusterPeer(each) for each in terms.others(broker.name)}
        self._inbound: dict[str, Client] = {}  # the links of others to this broker, by their names
        self.recording = ChangeLog(
            broker, terms.master, self.peers, record, map(ClusterChange.of_destination, configured), applies
        )
        self.remote_consumers = RemoteConsumers(broker, self.peers.values(), pump)
        self.remote_temporaries = RemoteTemporaries(broker)
        broker.perform[SubscribeCommand], broker.perform[UnsubscribeCommand] = self._subscribe, self._unsubscribe
        #: What other brokers say, and who hears it: by the verb, with the name of the broker.
        self._handlers: dict[str, Callable[..., None]] = {
            "record is": self.recording.on_record,
            "recorded": lambda teller, id, version, change: self.recording.on_change(
                teller, id, version, ClusterChange.from_json(change)
            ),
            "tell record": lambda teller: self.recording.introduce(self.peers[teller]),
            "change": lambda _teller, change: self._change_target.soon(ClusterChange.from_json(change)),
            "destroy": self._on_destroy,
            "temporary": lambda teller, destination, belongs: self.remote_temporaries.came(
                teller, Destination.parse(destination), TemporaryOwner.from_json(belongs)
            ),
            "temporary gone": lambda teller, destination: self.remote_temporaries.gone(
                teller, Destination.parse(destination)
            ),
            "temporaries are": self._on_temporaries,
        }

    # -- links to others

    @property
    def agreement(self) -> str:
        """What all brokers must have been told alike, as text."""
        settings, policies = self._broker.settings, self._broker.routing.table.definitions.policies
        only_operators = sorted(str(each.destination) for each in policies if each.auto_create is False)
        return json.dumps({
            "clusterBrokers": ",".join(sorted(self.terms.names)),
            "clusterMaster": self.terms.master,
            "autoDestroyAfter": str(settings.auto_destroy_after),
            "reconnectWindow": str(settings.reconnect_window),
            "autoCreate=false": ",".join(only_operators),
        })  # fmt: skip

    def peer_came(self, peer: ClusterPeer, link: ClusterPeerLink) -> None:
        """The link to it works: it is told all that it does not know, before anything is asked of it."""
        peer.came(link)
        at_home = self._broker.temporaries.at_home()
        peer.send_entries("temporaries are", [[str(each), belongs.to_json()] for each, belongs in at_home])
        self.recording.introduce(peer)
        self.remote_consumers.peer_came(peer)

    def peer_went(self, peer: ClusterPeer, why: str, *, refused: bool = False) -> None:
        """It does not work (any more)."""
        was_up = peer.is_up
        peer.went(why, refused=refused)
        if was_up:
            self.remote_consumers.peer_went(peer)

    @property
    def is_suspended(self) -> bool:
        """Whether no client is let in yet."""
        return not self.recording.is_current

    # -- links of others

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Let in another broker of the cluster, which is heard in its own way; or a client, if any is let in.

        Raises ProtocolError, which says why not.
        """
        if connect.cluster is None:
            if self.is_suspended and not client.is_internal:
                raise ProtocolError(
                    f"{self._broker.name} waits for its cluster's master {self.terms.master}, and lets nobody in "
                    "before it has heard of it: use another broker of the cluster, or try again"
                )
            return {}
        name = connect.bridge or ""
        if name not in self.peers:
            raise ProtocolError(f"{name} is none of this cluster's brokers: {', '.join(self.terms.names)}")
        if client.principal is not ANONYMOUS and client.principal.name != self.terms.user:
            raise ProtocolError(f"{client.principal.name} is not the user by whom brokers of the cluster log in")
        if different := differences(json.loads(self.agreement), _agreement(connect.cluster)):
            raise ProtocolError(f"the brokers were told different things of their cluster: {'; '.join(different)}")
        client.is_internal, client.member = True, name
        self._inbound[name] = client
        self.peers[name].reconnect_now()
        return {
            SendCommand: self._on_send,
            SubscribeCommand: self._broker.subscriptions.subscribe,
            UnsubscribeCommand: self._on_unsubscribe,
        }

    def _on_unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """Another broker consumes no longer; what it consumed may be deleted by now."""
        subscription = client.subscriptions.get(str(unsubscribe.id))
        if subscription is not None:
            self._broker.subscriptions.end(client, subscription)

    def on_client_connected(self, client: Client) -> None:
        """Give a client back the temporary destinations that it had at another broker."""
        self.remote_temporaries.returned(client)

    def on_client_disconnected(self, client: Client) -> None:
        """Forget the link of another broker that is gone."""
        if client.member and self._inbound.get(client.member) is client:
            del self._inbound[client.member]
            self.remote_temporaries.on_broker_lost(client.member)

    def _on_send(self, client: Client, send: SendCommand) -> None:
        """Another broker tells, or asks, something. Raises RequestRefused."""
        try:
            document = json.loads(send.body)
            self._handle(client, send, str(document.pop("verb")), document)
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            logger.exception("what %s told cannot be read", client.member)
            raise RequestRefused(f"{self._broker.name} cannot read what it was told: {wrong!r}") from wrong

    def _handle(self, client: Client, send: SendCommand, verb: str, document: dict[str, Any]) -> None:
        if verb == "record":
            change = ClusterChange.from_json(document["change"])
            self.recording.asked(change, lambda why, version: self._answer(client, send, why, str(version)))
        elif verb == "late":
            self._broker.acknowledgements.expire_remote(client, document["ack"])
        elif verb in self._handlers:
            self._handlers[verb](client.member, **document)
            self._broker.replies.confirm(client, send.receipt)
        else:
            raise RequestRefused(f"{self._broker.name} knows no {verb!r}: it is of another version")

    def _answer(self, client: Client, send: SendCommand, why_not: str, answer: str) -> None:
        if why_not:
            self._broker.replies.refuse(client, RequestRefused(why_not), send.receipt)
        else:
            self._broker.replies.confirm(client, f"{send.receipt}{ANSWER}{answer}")
        client.sink.flush()

    # -- destinations and durable subscriptions

    def change(self, change: ClusterChange, then: Then) -> None:
        """An operator, or a subscriber, makes or deletes something: `then` is told when it is recorded, or why not."""
        self.recording.change(change, then)

    def on_destroyed(self, destination: Destination) -> None:
        """An operator deletes here what clients made."""
        for peer in self.peers.values():
            peer.tell(verb="destroy", destination=str(destination))

    def _on_destroy(self, _teller: str, destination: str) -> None:
        found = Destination.parse(destination)
        if not self._broker.creation.is_declared(found):
            self._change_target.soon(ClusterChange.of_destination(found, False))

    def _subscribe(self, client: Client, subscribe: SubscribeCommand, waited_ms: int = 0) -> None:
        """Consume; a durable subscription that does not exist so is recorded first. Raises RequestRefused."""
        go_on = self._broker.subscriptions.subscribe
        if "subscriptionName" not in subscribe.options:
            go_on(client, subscribe)
            return
        topics = Destination.parse_list(subscribe.destination)
        wanted = subscription_identity(client, subscribe, topics)
        assert wanted is not None
        if waited_ms < TAKEOVER_MS and self._is_leaving(wanted):
            again = waited_ms + TAKEOVER_STEP_MS
            self._broker.timers.at(clock.now_ms() + TAKEOVER_STEP_MS, lambda: self._retry(client, subscribe, again))
            return
        if not (wanted.durable and self._broker.durables.would_change(wanted)):
            go_on(client, subscribe)
            return
        for topic in topics:
            self._broker.authorizer.require(client, "read", topic)
        change = ClusterChange.of_subscription(wanted)
        self._when_recorded(client, subscribe.receipt, change, lambda: go_on(client, subscribe))

    def _is_leaving(self, wanted: SubscriptionIdentity) -> bool:
        """Whether only another broker consumes a durable subscription: its client may have left there just now."""
        durable = self._broker.durables.known_as(wanted)
        if durable is None or wanted.shared or not durable.active:
            return False
        return all(each.client.member for each in durable.log.consumers)

    def _retry(self, client: Client, subscribe: SubscribeCommand, waited_ms: int) -> None:
        if client.id in self._broker.clients:
            try:
                self._subscribe(client, subscribe, waited_ms)
            except RequestRefused as error:
                self._broker.replies.refuse(client, error, subscribe.receipt)

    def _unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """Consume no longer; the end of a durable subscription is recorded first. Raises RequestRefused."""
        go_on = self._broker.subscriptions.unsubscribe
        if unsubscribe.subscription_name is None:
            go_on(client, unsubscribe)
            return
        owner = client.client_id if client.named else ""
        durable = self._broker.durables.find(owner, unsubscribe.subscription_name)
        if durable.active:  # which it will say
            go_on(client, unsubscribe)
            return
        for topic in durable.subscription.topics:
            self._broker.authorizer.require_read(client, topic)
        change = ClusterChange.of_subscription(durable.subscription, False)
        self._when_recorded(
            client, unsubscribe.receipt, change, lambda: self._on_end_recorded(client, durable, unsubscribe)
        )

    def _on_end_recorded(self, client: Client, durable: Any, unsubscribe: UnsubscribeCommand) -> None:
        """It is recorded that it is gone; maybe it is gone here, too, by now."""
        if self._broker.durables.known(durable.log.name) is durable:
            self._broker.durables.remove(durable)
        self._broker.replies.confirm_after(client, unsubscribe.receipt)

    def _when_recorded(
        self, client: Client, receipt: str | None, change: ClusterChange, go_on: Callable[[], None]
    ) -> None:
        """Do this when the change is recorded; the client is not read from until then."""
        client.sink.hold(True)

        def recorded(why_not: str) -> None:
            if client.id not in self._broker.clients:
                return
            try:
                if why_not:
                    raise RequestRefused(why_not)
                go_on()
            except RequestRefused as error:
                self._broker.replies.refuse(client, error, receipt)
            client.update_reading()
            client.sink.flush()

        self.change(change, recorded)

    # -- temporary destinations

    def on_consumer_started(self, subscription: Subscription) -> None:
        """Consume at the other brokers for a client of this one."""
        self.remote_consumers.started(subscription)

    def on_consumer_stopped(self, subscription: Subscription) -> None:
        """Stop consuming at the other brokers for a client of this one."""
        self.remote_consumers.stopped(subscription)

    def on_temporary_added(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """A client of this broker has it: all brokers do, from now on."""
        for peer in self.peers.values():
            peer.tell(verb="temporary", destination=str(destination), belongs=belongs.to_json())

    def on_temporary_removed(self, destination: Destination) -> None:
        """It went with its client."""
        for peer in self.peers.values():
            peer.tell(verb="temporary gone", destination=str(destination))

    def _on_temporaries(self, teller: str, entries: list[Any], first: bool, last: bool) -> None:
        part = {Destination.parse(each): TemporaryOwner.from_json(belongs) for each, belongs in entries}
        self.remote_temporaries.replace_part(teller, part, first=first, last=last)

    # -- for operators

    def status(self, *, brief: bool = False) -> ClusterStatus:
        """How things stand; `brief`: without what takes a look at every message and temporary destination."""
        recording = self.recording
        own_address = next(each.address for each in self.terms.members if each.name == self._broker.name)
        own = MemberStatus(self._broker.name, str(own_address), MemberState.SELF, recording.is_master)
        return ClusterStatus(
            self._broker.name, self.terms.master, self.is_suspended, not recording.why_not, recording.why_not,
            recording.record.id, recording.record.version, len(recording.record.entries),
            (own, *(self._status_of(each, brief) for each in self.peers.values())),
            len(self.remote_temporaries), () if brief else self.remote_temporaries.to_json(),
        )  # fmt: skip

    def _status_of(self, peer: ClusterPeer, brief: bool) -> MemberStatus:
        inbound = self._inbound.get(peer.name)
        return MemberStatus(
            peer.name, str(peer.address), peer.state, peer.name == self.terms.master, peer.since_ms, peer.last_error,
            inbound is not None, len(inbound.subscriptions) if inbound is not None else 0,
            len(self.remote_consumers) if peer.is_up else 0, peer.taken,
            0 if brief else self.remote_consumers.waiting(peer),
        )  # fmt: skip


def _agreement(text: str) -> dict[str, str]:
    """What another broker was told. Raises ProtocolError."""
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError):
        raise ProtocolError("what it was told of the cluster cannot be read") from None
