"""SendAdmission: decides whether a client may send to a destination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import Authorizer, CreationPort, ProducersPort, Queues, TemporariesPort


class SendAdmission:
    """Checks permissions and destinations of SENDs. A part of the broker."""

    def __init__(
        self,
        *,
        authorizer: Authorizer,
        creation: CreationPort,
        producers: ProducersPort,
        queues: Queues,
        temporaries: TemporariesPort,
    ) -> None:
        self._authorizer, self._creation, self._producers = authorizer, creation, producers
        self._queues, self._temporaries = queues, temporaries

    def admit(self, client: Client, targets: Sequence[Destination]) -> None:
        """Make the client a producer of these destinations. Raises RequestRefused."""
        for each in targets:
            self._authorizer.require(client, "write", each)
        for each in targets:
            if each not in client.producing_to:
                self.check(each)
                if each.is_temporary:
                    self._temporaries.add_producer(client, each)
                self._producers.began(client, each)

    def check(self, destination: Destination) -> None:
        """Raise RequestRefused when, as things are, no client may send there."""
        if destination.is_temporary:
            self._temporaries.check(destination)
        elif destination.is_queue and destination.address is None:
            self._queues.check_direct(destination)
        self._creation.check(destination)
