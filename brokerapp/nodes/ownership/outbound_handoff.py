"""Carries our clients' consumers over when a log is handed off to another node, or taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from brokerapp.core.ports import FlowControlPort
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccount, OutboundAccounts
from brokerapp.nodes.delivery.outbound_deliveries import OutboundDeliveries


class OutboundHandoff:
    """Turns consumers of local logs into consumers of remote ones, and back."""

    def __init__(
        self,
        *,
        accounts: OutboundAccounts,
        deliveries: OutboundDeliveries,
        clients: Mapping[str, Client],
        flow_control: FlowControlPort,
    ) -> None:
        self._accounts, self._deliveries = accounts, deliveries
        self._clients, self._flow_control = clients, flow_control

    def on_handed_off(self, log: MessageLog) -> None:
        """Keep the consumers among our clients, with what they hold, as consumers at the next owner."""
        account = self._accounts.of(log.name)
        for subscription in [each for each in log.consumers if not each.owner_session]:
            self._accounts.add_consumer(subscription, log, may_be_told=True)
        for client in self._clients.values():
            for subscription in client.subscriptions.values():
                if subscription.browse_cursor is None:
                    account.add_unacked(log.name, subscription, subscription.unacked.values())
        # what is acknowledged in transactions was credited then
        settled: list[Sequence[tuple[Subscription, str, LogEntry]]] = []
        open_ones = [each for client in self._clients.values() for each in client.transactions.values()]
        settled += [each.settled for each in {id(each): each for each in open_ones}.values()]  # clients may share one
        settled += [each.settled for each in self._flow_control.waiting()]
        for subscription, _, entry in chain.from_iterable(settled):
            account.credited_seqs |= account.add_unacked(log.name, subscription, (entry,))

    def on_taken_over(self, log: MessageLog) -> OutboundAccount:
        """Return the consumers among our clients with what they hold: they are local ones from now on.

        What came and their clients do not have yet waits in the log again.
        """
        account = self._accounts.take(log.name)
        self._deliveries.release_log(log.name, account)
        return account
