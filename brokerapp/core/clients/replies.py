"""Confirm or refuse what clients request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brokerapp.engine.clients.client import Client
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerContext, DispatchQueue, HeldSendsPort


class ClientReplies:
    """Sends RECEIPT and ERROR frames, in the order of the requests."""

    def __init__(self, *, context: BrokerContext, dispatcher: DispatchQueue, held: HeldSendsPort) -> None:
        self._commits, self._dispatcher, self._held = context.commits, dispatcher, held

    def confirm_after(self, client: Client, receipt: str | None, then: Callable[[], None] | None = None) -> None:
        """Confirm a request after everything that the client requested before is done."""

        def done(_seq: int = 0, _refused: str = "") -> None:
            client.on_write_done()
            self.confirm(client, receipt)
            if then is not None:
                then()

        self._held.store_of(client)
        client.on_write_started()
        if client.pending_writes > 1 or self._commits.busy:
            self._commits.submit(PendingWrite(callback=done))
        else:
            done()

    def try_command(self, client: Client, perform: Callable[[Client, Any], None], action: Any) -> None:
        """Perform one of several requests; a refusal does not stop the others."""
        try:
            perform(client, action)
        except RequestRefused as error:
            self.refuse(client, error, action.receipt)

    def confirm(self, client: Client, *receipts: str | None) -> None:
        """Confirm requests that asked for a receipt."""
        wanted = [receipt for receipt in receipts if receipt is not None]
        if wanted:
            client.sink.receipts(wanted)
            self._dispatcher.wake(client)

    def refuse(self, client: Client, error: BrokerError, receipt: str | None) -> None:
        """Tell the client why its request cannot be done."""
        client.sink.refuse(error, receipt)
        self._dispatcher.wake(client)
