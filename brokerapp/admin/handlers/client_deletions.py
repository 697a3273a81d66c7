"""Create and delete queues and topics for clients that manage destinations (JMS: ActiveMQConnection).

What a client deletes is deleted as operators do it: with its messages, by the node that owns it, unless it has
consumers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from brokerapp.core.clients.authorizer import ClientAuthorizer
from brokerapp.core.ports import Replies
from brokerapp.core.publishing.send_admission import SendAdmission
from brokerapp.engine.clients.client import Client
from brokerapp.errors import BrokerError, DestinationNotFound, RequestRefused
from brokerapp.model.commands import DestinationCommand
from brokerapp.store.requests import RequestStore

#: Seconds that a deletion may take: one of a million messages takes some ten.
DELETE_SECONDS = 60.0


class ClientDeletions:
    """Has the destinations deleted that clients delete, one after the other."""

    def __init__(
        self,
        *,
        admission: SendAdmission,
        authorizer: ClientAuthorizer,
        perform_temporary: Callable[[Client, DestinationCommand], None],
        replies: Replies,
        request_dispatch: Callable[[], None],
        requests: RequestStore,
    ) -> None:
        self._admission, self._authorizer, self._replies = admission, authorizer, replies
        self._perform_temporary, self._request_dispatch = perform_temporary, request_dispatch
        self._requests = requests
        self._wanted: asyncio.Queue[tuple[Client, DestinationCommand]] = asyncio.Queue()

    def perform(self, client: Client, command: DestinationCommand) -> None:
        """Create a destination, or have it deleted. Raises RequestRefused."""
        if command.destination.is_temporary:
            self._perform_temporary(client, command)
            return
        self._authorizer.require(client, "admin", command.destination)
        if command.is_created:
            self._admission.ensure(command.destination)
            self._replies.confirm_after(client, command.receipt)
        else:
            self._wanted.put_nowait((client, command))

    async def run(self) -> None:
        """Delete one destination after the other, until cancelled."""
        while True:
            client, command = await self._wanted.get()
            try:
                reply = await self._requests.send("delete", {"destination": str(command.destination)}, DELETE_SECONDS)
            except BrokerError as error:
                reply = {"error": str(error), "code": error.code}
            if "error" in reply and reply["code"] != DestinationNotFound.code:
                self._replies.refuse(client, RequestRefused(reply["error"]), command.receipt)
            else:
                self._replies.confirm_after(client, command.receipt)
            self._request_dispatch()
