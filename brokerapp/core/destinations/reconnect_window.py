"""Keep temporary destinations while their client is disconnected and may reconnect.

Such a client says `reconnect` when it connects, and a client-id by which it is known again. Its destinations, and what
comes to them, wait for it for a while after its connection broke, over restarts of the broker too; it finds them under
the names it gave them. Who says good-bye needs them no more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.policy.life_cycles import DestinationOrigin, survives_restart
from brokerapp.model.destination import Destination
from brokerapp.system import clock
from brokerapp.system.timers import Timer

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, BrokerEvents, QueueLifecycle, TemporaryRecovery

logger = logging.getLogger(__name__)

#: Among the attributes of a temporary destination in the store: whose it is, if that client may reconnect.
BELONGS = "belongs"
#: ... and the session of the node that has it, where its name does not say that.
AT = "at"
OF_TEMPORARY = frozenset({BELONGS, AT})


class ReconnectWindow:
    """Keeps temporary destinations whose clients are disconnected and may reconnect."""

    def __init__(
        self, *, context: BrokerContext, events: BrokerEvents, queues: QueueLifecycle, temporaries: TemporaryRecovery
    ) -> None:
        self._session, self._timers, self._commits = context.session, context.timers, context.commits
        self._events, self._queues, self._temporaries = events, queues, temporaries
        self._waiting: dict[Destination, tuple[TemporaryOwner, Timer]] = {}

    def __contains__(self, destination: Destination) -> bool:
        return destination in self._waiting

    def __iter__(self) -> Iterator[tuple[Destination, TemporaryOwner]]:
        """Yield the destinations that are kept, and their owners."""
        return ((destination, belongs) for destination, (belongs, _) in self._waiting.items())

    def keep(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """Let a destination outlive this node if its client may reconnect."""
        if not survives_restart(DestinationOrigin.TEMPORARY, belongs.window_ms):
            return
        self._describe(destination, {BELONGS: belongs.to_json(), AT: self._session})

    def announce(self, destination: Destination) -> None:
        """Tell other nodes that this one has a destination, where its name does not say so.

        Before it is created: what they are told without that, they take for one that nobody has.
        """
        self._describe(destination, {AT: self._session})

    def _describe(self, destination: Destination, attributes: dict[str, Any]) -> None:
        if destination.is_queue:
            queues = self._queues
            queues.kept[destination] = attributes
            if destination in queues:
                queues.redescribe(queues.find(destination))
        else:
            self._commits.create(str(destination), json.dumps({"kind": destination.kind, **attributes}))

    def recover(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """Keep a destination of a node that is gone for as long as its client may reconnect."""
        self._temporaries.restore(destination, belongs)
        self.wait(destination, belongs, belongs.window_ms)

    def wait(self, destination: Destination, belongs: TemporaryOwner, grace_ms: int) -> None:
        """Its client is gone, and may come back within this time."""

        def over() -> None:
            if self._events.is_suspended:
                self.wait(destination, belongs, grace_ms)  # it could not come back, as nobody is let in
            elif self._waiting.pop(destination, None) is not None:
                logger.info("%s did not reconnect: %s is removed", belongs.client_id, destination)
                self._temporaries.remove(destination)

        self.stop(destination)
        self._waiting[destination] = belongs, self._timers.at(clock.now_ms() + grace_ms, over)

    def stop(self, destination: Destination) -> None:
        """Keep a destination no longer."""
        if (found := self._waiting.pop(destination, None)) is not None:
            found[1].cancel()

    def on_client_returned(self, client: Client) -> None:
        """Give a client that connects what waits for it."""
        for destination, belongs in list(self):
            if belongs.is_of(client):
                self.stop(destination)
                self._temporaries.take_ownership(client, destination, belongs)
