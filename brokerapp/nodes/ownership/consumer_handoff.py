"""Restores the consumers of a log that this node takes over, whichever node their clients are at."""

from __future__ import annotations

from brokerapp.core.ports.commits import Commits
from brokerapp.engine.dispatch.message_groups import group_of
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import is_open
from brokerapp.nodes.delivery.inbound_consumers import InboundConsumers
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccount
from brokerapp.nodes.ports import OwnedDurables, OwnedLogConsumers


class ConsumerHandoff:
    """Attaches consumers to a log, with the message groups of those that hold some of it."""

    def __init__(
        self,
        *,
        commits: Commits,
        consumers: OwnedLogConsumers,
        durables: OwnedDurables,
        inbound_consumers: InboundConsumers,
    ) -> None:
        self._commits, self._consumers, self._durables = commits, consumers, durables
        self._inbound_consumers = inbound_consumers

    def restore(self, log: MessageLog, account: OutboundAccount, mark: str) -> None:
        """Attach the consumers of an account, and let those come first that hold messages.

        `mark` is the recovery mark that the former owner left in the store.
        """
        durable = self._durables.known(log.name)
        for subscription in account.consumers:
            if durable is not None:
                self._durables.adopt(durable, subscription)
            self._consumers.attach_local(subscription, log)
        holders = {holder for holder, _ in account.unacked.values()}
        inbound = self._inbound_consumers
        log.consumers.sort(key=lambda each: each not in holders and not inbound.has_unacked(each, log.name))
        for subscription, entry in (*account.unacked.values(), *inbound.unacked_of(log.name)):
            group = group_of(entry)
            if group is not None and subscription in log.consumers:
                log.assign_group(group, subscription)
        if log.consumers:
            self._consumers.mark(log)
        elif is_open(mark):
            self._commits.set_recovery_mark(log.name, str(log.maybe_delivered_up_to))
        self._durables.moved(log)
        log.counts.ConsumerCount = len(log.consumers)
