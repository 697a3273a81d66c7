"""SendAdmission: decides whether a client may send to a destination, or open a producer there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.model.commands import ProducerCommand
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        Authorizer,
        BrokerContext,
        CreationPort,
        ProducersPort,
        Queues,
        Replies,
        TemporariesPort,
    )


class SendAdmission:
    """Checks permissions and destinations of SENDs and producers. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        authorizer: Authorizer,
        creation: CreationPort,
        producers: ProducersPort,
        queues: Queues,
        replies: Replies,
        temporaries: TemporariesPort,
    ) -> None:
        self._counters, self._replies = context.counters, replies
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

    def open_or_close(self, client: Client, command: ProducerCommand) -> None:
        """Open a producer at destinations, which exist from then on, or close it. Raises RequestRefused."""
        if command.destination is None:
            self._producers.closed(client, command.id)
        else:
            targets = Destination.parse_list(command.destination)
            for each in targets:
                self._authorizer.require(client, "write", each)
            for each in targets:
                self.ensure(each)
            self._producers.opened(client, command.id, [each for each in targets if not is_advisory(each)])
        self._replies.confirm_after(client, command.receipt)

    def ensure(self, destination: Destination) -> None:
        """Create a destination that does not exist yet. Raises RequestRefused where no client may send there."""
        self.check(destination)
        if destination.is_pattern or destination.is_temporary or self._creation.exists(destination):
            return
        if destination.is_queue:
            self._queues.ensure(destination)
        else:
            self._counters.of(destination)

    def check(self, destination: Destination) -> None:
        """Raise RequestRefused when, as things are, no client may send there."""
        if destination.is_temporary:
            self._temporaries.check(destination)
        elif destination.is_queue and destination.address is None:
            self._queues.check_direct(destination)
        self._creation.check(destination)
