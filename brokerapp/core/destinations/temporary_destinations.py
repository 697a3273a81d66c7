"""Create temporary destinations when their connection first uses them, and delete them with it.

A client calls them by names of its own choice; the broker gives each a name nobody else has, by which anybody may send
to it, and consume from it, as long as it is there. A client that names its connection names them, too.

One of another broker of the network is here under the same name as long as a bridge from there consumes it, one of
another broker of the cluster as long as that has it. Those of a client that may reconnect wait for it: see
reconnect_window.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from brokerapp.core.destinations.reconnect_window import AT
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner, owner_for, session_of_temporary
from brokerapp.engine.policy.life_cycles import ConnectionEnd, reconnect_grace_ms
from brokerapp.errors import LimitExceeded, RequestRefused, TemporaryDestinationGone
from brokerapp.model.broker_path import Path
from brokerapp.model.commands import DestinationCommand
from brokerapp.model.destination import Destination, DestinationKind, check_name

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        BrokerEvents,
        DestinationRemovalPort,
        Placement,
        QueueLifecycle,
        ReconnectWindowPort,
        Replies,
        RoutingPort,
    )

#: Temporary destinations of one client: a bound on what a peer can make us keep.
MAX_TEMPORARIES = 10_000
#: Those of other brokers here, for the same reason.
MAX_LENT = 100_000
#: Topics of other nodes' clients that are known to have ended: whoever still sends to one had its name a moment ago.
MAX_ENDED = 10_000


class TemporaryDestinations:
    """Manages the temporary destinations of clients."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        events: BrokerEvents,
        placement: Placement,
        queues: QueueLifecycle,
        reconnect_window: ReconnectWindowPort,
        removal: DestinationRemovalPort,
        replies: Replies,
        routing: RoutingPort,
    ) -> None:
        self._name, self._session, self._commits, self._counters = (
            context.name,
            context.session,
            context.commits,
            context.counters,
        )
        self._authorizer, self._events = authorizer, events
        self._placement, self._queues, self._reconnect_window = placement, queues, reconnect_window
        self._removal, self._routing, self._replies = removal, routing, replies
        self._senders: dict[Destination, dict[Client, None]] = {}  # of each that exists, who sent to it
        self._belonging: dict[Destination, TemporaryOwner] = {}  # of those that are at home here
        self._lent: dict[Destination, set[tuple[Client, str]]] = {}  # of each of another broker, who consumes it
        self._hosted: set[Destination] = set()  # those of other brokers of the cluster
        self._ended: dict[Destination, None] = {}  # topics of other nodes' clients

    def __contains__(self, destination: Destination) -> bool:
        return destination in self._senders

    def own(self, client: Client, kind: DestinationKind, name: str) -> Destination:
        """Return the client's temporary destination of this name; create it on first use. Raises RequestRefused."""
        found = client.temporaries.get((kind, name))
        if found is None:
            found = self._create(client, kind, name)
        return found

    def perform(self, client: Client, command: DestinationCommand) -> None:
        """Create or delete a temporary destination that the client named itself. Raises RequestRefused."""
        destination = command.destination
        key = destination.kind, destination.name
        is_own = key in client.temporaries
        if command.is_created and not is_own:
            self._create_named(client, destination)
        elif is_own and not command.is_created:
            del client.temporaries[key], client.temporary_names[destination.stomp]
            self.remove(destination)
        elif not command.is_created and destination in self._senders:
            raise RequestRefused(f"{destination} belongs to another connection")
        self._placement.when_propagated(lambda: self._replies.confirm_after(client, command.receipt))

    def _create_named(self, client: Client, destination: Destination) -> None:
        """Create a destination of the client's own, or take it over from a node where its connection was before."""
        if destination not in self._senders:
            self._create_as(client, destination.kind, destination.name, destination, names_node=False)
        elif self._may_take_over(client, destination):
            self._placement.orphaned_temporaries.remove(destination)
            self.take_ownership(client, destination, owner_for(client, destination.kind, destination.name))
            self._reconnect_window.announce(destination)
        else:
            raise RequestRefused(f"the temporary destination {destination} exists already")

    def _may_take_over(self, client: Client, destination: Destination) -> bool:
        """Whether a client is the owner that comes back: by the name of the connection, and its user."""
        owner = self._belonging.get(destination)
        is_user = owner is None or owner.user == client.principal.name
        return bool(client.connection_id) and destination.name.startswith(f"{client.connection_id}:") and is_user

    def _create(self, client: Client, kind: DestinationKind, name: str) -> Destination:
        number = len(client.temporaries) + 1
        return self._create_as(client, kind, name, Destination(kind, f"ID:{self._name}-{client.id}:{number}"))

    def _create_as(
        self, client: Client, kind: DestinationKind, name: str, destination: Destination, *, names_node: bool = True
    ) -> Destination:
        check_name(name)
        if len(client.temporaries) >= MAX_TEMPORARIES:
            raise LimitExceeded(f"a connection has at most {MAX_TEMPORARIES} temporary destinations")
        self._authorizer.require(client, "admin", destination)
        if not names_node:
            self._reconnect_window.announce(destination)
        self._begin(destination)
        belongs = owner_for(client, kind, name)
        self._reconnect_window.keep(destination, belongs)
        self._settle(client, destination, belongs)
        return destination

    def _settle(self, client: Client, destination: Destination, belongs: TemporaryOwner) -> None:
        """It is this client's own, and so at home here."""
        client.temporaries[belongs.kind, belongs.name] = destination
        client.temporary_names[destination.stomp] = f"/{belongs.kind}/{belongs.name}"
        self._hosted.discard(destination)
        self._belonging[destination] = belongs
        self._events.temporary_added(destination, belongs)

    def take_ownership(self, client: Client, destination: Destination, belongs: TemporaryOwner) -> None:
        """Give a client that came back, from here or another broker, a destination that waited for it."""
        if (belongs.kind, belongs.name) not in client.temporaries:
            self._reconnect_window.keep(destination, belongs)
            self._settle(client, destination, belongs)

    def restore(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """Restore a destination of a node of this broker that is gone."""
        self._senders.setdefault(destination, {})
        self._belonging[destination] = belongs
        if not destination.is_queue:
            self._counters.of(destination)
        self._events.temporary_added(destination, belongs)

    def at_home(self) -> Iterator[tuple[Destination, TemporaryOwner]]:
        """Yield the destinations whose clients are, or were, connected to this broker, with their owners."""
        return iter(self._belonging.items())

    def host_remote(self, destination: Destination) -> None:
        """Let a destination of another broker of the cluster exist here, too."""
        self._leave(destination)
        self._placement.orphaned_temporaries.remove(destination)
        self._hosted.add(destination)
        if destination not in self._senders:
            if destination.is_queue:  # a node that is told of it by this one takes it else for one that nobody has
                self._queues.kept[destination] = {AT: self._session}
            self._begin(destination)

    def _leave(self, destination: Destination) -> None:
        """It is at home here no more: its client came back somewhere else, or it is gone."""
        self._belonging.pop(destination, None)
        self._reconnect_window.stop(destination)

    def _begin(self, destination: Destination) -> None:
        self._senders[destination] = {}
        if destination.is_queue:
            self._queues.create(destination)
        else:
            self._counters.of(destination)

    def learn(self, destination: Destination, at: str, belongs: TemporaryOwner | None) -> None:
        """Note which node has a destination; `belongs`: its owner, if that may reconnect.

        One of another broker of the cluster is told by each node that hosts it: it is no node's until a client of this
        broker takes it over.
        """
        if destination in self._hosted and belongs is None:
            return
        self._hosted.discard(destination)
        self._leave(destination)
        self._senders.setdefault(destination, {})
        self._placement.orphaned_temporaries.add(destination, at, belongs)

    def on_deleted_remotely(self, destination: Destination) -> None:
        """Remove a destination that another node removed."""
        self._leave(destination)
        self._hosted.discard(destination)
        self._placement.orphaned_temporaries.remove(destination)
        self._queues.kept.pop(destination, None)
        if not destination.is_queue:
            self._counters.remove(destination)
            self._note_ended(destination)
        for producer in self._senders.pop(destination, ()):
            producer.producing_to.discard(destination)

    def _note_ended(self, topic: Destination) -> None:
        if len(self._ended) >= MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[topic] = None

    def host_for_bridge(self, bridge: Client, subscription: str, destination: Destination) -> None:
        """Let a destination of another broker, which a bridge subscribes to, exist here. Raises RequestRefused."""
        if destination in self._senders and destination not in self._lent:
            return  # it is of this broker
        self._authorizer.require(bridge, "admin", destination)
        if destination not in self._senders:
            if len(self._lent) >= MAX_LENT:
                raise LimitExceeded(f"there are at most {MAX_LENT} temporary destinations of other brokers here")
            self._queues.kept[destination] = {AT: self._session}  # which its name does not say
            self._lent[destination] = {(bridge, subscription)}
            self._begin(destination)
        self._lent[destination].add((bridge, subscription))

    def release_remote(self, client: Client, subscription: str, destination: Destination) -> None:
        """Remove a destination of another broker when the last subscription of a bridge to it has ended."""
        consumers = self._lent.get(destination, set())
        if (client, subscription) in consumers:
            if len(consumers) == 1:
                self.remove(destination)
                self._lent.pop(destination, None)  # now that it was told where it comes from
            consumers.discard((client, subscription))

    def path_of(self, destination: Destination) -> Path:
        """Return the brokers that a destination of another broker comes from; none for any other one."""
        return tuple(sorted({bridge.bridge or "" for bridge, _ in self._lent.get(destination, ())}))

    def is_gone(self, destination: Destination) -> bool:
        """Return whether it is a temporary destination that does not exist."""
        if not destination.is_temporary or destination in self._senders:
            return False
        if destination.is_queue or destination in self._ended:
            return True
        # of queues all nodes are told before; that a topic of another node's client began is known by its name
        return not self._placement.is_other_member(session_of_temporary(str(destination)))

    def check(self, destination: Destination) -> None:
        """Raise RequestRefused when a temporary destination does not exist."""
        if self.is_gone(destination):
            raise TemporaryDestinationGone(str(destination))

    def add_producer(self, client: Client, destination: Destination) -> None:
        """Note that a client sends there. Raises RequestRefused when it does not exist."""
        self.check(destination)
        if destination.is_temporary and destination not in self._senders:  # a topic of another node's client
            self.learn(destination, session_of_temporary(str(destination)), None)
        if destination in self._senders:
            self._senders[destination][client] = None

    def remove_producer(self, client: Client, destination: Destination) -> None:
        """Note that a client sends there no more."""
        self._senders.get(destination, {}).pop(client, None)

    def end(self, client: Client) -> None:
        """Remove the destinations of a client that is gone, or keep them while it may reconnect."""
        for destination in client.temporaries.values():
            belongs = self._belonging.get(destination)
            if belongs is None:  # its client came back somewhere else
                continue
            grace = reconnect_grace_ms(
                ConnectionEnd.LEFT if client.disconnected else ConnectionEnd.LOST, belongs.window_ms
            )
            if grace:
                self._reconnect_window.wait(destination, belongs, grace)
            else:
                self.remove(destination)
        client.temporaries.clear()
        client.temporary_names.clear()

    def remove_orphan(self, destination: Destination) -> None:
        """Remove a destination of a node that is gone, at all nodes."""
        if not destination.is_queue:
            self._commits.remove(str(destination))
        self.remove(destination)

    def remove(self, destination: Destination) -> None:
        """Remove a temporary destination with its messages."""
        if destination not in self._senders:
            return
        self._hosted.discard(destination)
        was_at_home = self._belonging.pop(destination, None) is not None
        self._placement.orphaned_temporaries.remove(destination)
        if was_at_home:
            self._events.temporary_removed(destination)
        if not destination.is_queue and was_at_home:
            self._commits.remove(str(destination))
        for producer in self._senders.pop(destination):
            producer.producing_to.discard(destination)
        if destination.is_queue:
            self._queues.discard(self._queues.find(destination))
            self._queues.kept.pop(destination, None)
            self._removal.delete_mirror(destination)
        else:
            self._counters.remove(destination)
        self._routing.table.forget_routes(destination)
