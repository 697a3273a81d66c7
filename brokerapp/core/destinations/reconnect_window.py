"""Reconnecting: what temporary destinations do while the client they belong to is away, but may come back.

Such a client says `reconnect` when it connects, and a client-id by which it is known again. Its destinations, and what
comes to them, wait for it for a while after its connection broke, over restarts of the broker too; it finds them under
the names it gave them. Who says good-bye needs them no more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.life_cycles import DestinationOrigin, is_kept_over_restarts
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.system import clock
from brokerapp.system.timers import Timer

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker

logger = logging.getLogger(__name__)

#: Among the attributes of a temporary destination in the store: whose it is, if that client may reconnect.
BELONGS = "belongs"
#: ... and the session of the node that has it, where its name does not say that.
AT = "at"
OF_TEMPORARY = frozenset({BELONGS, AT})


@dataclass(frozen=True, slots=True)
class TemporaryOwner:
    """Whose a temporary destination is, wherever and whenever that client connects."""

    client_id: str
    user: str
    kind: DestinationKind
    name: str  #: the client's own
    window_ms: int  #: how long it waits for the client; 0: it does not

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "kind": str(self.kind)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TemporaryOwner:
        """The inverse of to_json."""
        return TemporaryOwner(**{**data, "kind": DestinationKind(data["kind"])})

    def is_of(self, client: Client) -> bool:
        """Whether it is this client's."""
        mine = client.named and client.reconnect_ms > 0 and self.window_ms > 0
        return mine and (client.client_id, client.principal.name) == (self.client_id, self.user)


def belonging(client: Client, kind: DestinationKind, name: str) -> TemporaryOwner:
    """Whose a new temporary destination of a client is."""
    return TemporaryOwner(client.client_id, client.principal.name, kind, name, client.reconnect_ms)


class ReconnectWindow:
    """The temporary destinations whose clients are away. A part of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[Destination, tuple[TemporaryOwner, Timer]] = {}

    def __contains__(self, destination: Destination) -> bool:
        return destination in self._waiting

    def __iter__(self) -> Iterator[tuple[Destination, TemporaryOwner]]:
        """What waits, and for whom."""
        return ((destination, belongs) for destination, (belongs, _) in self._waiting.items())

    def keep(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """Let it outlive this node, which has it, if its client may reconnect."""
        if not is_kept_over_restarts(DestinationOrigin.TEMPORARY, belongs.window_ms):
            return
        attributes = {BELONGS: belongs.to_json(), AT: self._broker.session}
        if destination.is_queue:
            queues = self._broker.queues
            queues.kept[destination] = attributes
            queues.redescribe(queues.find(destination))
        else:
            self._broker.commits.create(str(destination), json.dumps({"kind": destination.kind, **attributes}))

    def recover(self, destination: Destination, belongs: TemporaryOwner) -> None:
        """One that a node had that is gone: its client has the window from now on."""
        self._broker.temporaries.restore(destination, belongs)
        self.wait(destination, belongs, belongs.window_ms)

    def wait(self, destination: Destination, belongs: TemporaryOwner, grace_ms: int) -> None:
        """Its client is gone, and may come back within this time."""

        def over() -> None:
            if self._broker.cluster is not None and self._broker.cluster.is_suspended:
                self.wait(destination, belongs, grace_ms)  # it could not come back, as nobody is let in
            elif self._waiting.pop(destination, None) is not None:
                logger.info("%s did not come back: %s is removed", belongs.client_id, destination)
                self._broker.temporaries.remove(destination)

        self.stop(destination)
        self._waiting[destination] = belongs, self._broker.timers.at(clock.now_ms() + grace_ms, over)

    def stop(self, destination: Destination) -> None:
        """It waits here no longer."""
        if (found := self._waiting.pop(destination, None)) is not None:
            found[1].cancel()

    def returned(self, client: Client) -> None:
        """A client connected: what waits for it is its own again."""
        for destination, belongs in list(self):
            if belongs.is_of(client):
                self.stop(destination)
                self._broker.temporaries.adopt(client, destination, belongs)
