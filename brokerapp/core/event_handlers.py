"""Connect the events of a broker with the parts that follow them: what happens when a client, say, is gone."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.core.broker import Broker
from brokerapp.engine.clients.client import Client


def add_event_handlers(broker: Broker) -> None:
    """Let the parts, and then the advisories, follow what happens. The order is that in which they are called."""
    events, advisories = broker.events, broker.advisories

    def withdraw_blocked_sends(client: Client) -> None:
        if client.blocked_sends:
            broker.flow_control.on_client_gone(client)

    def on_logs_recovered(last_seqs: Mapping[str, int]) -> None:
        if broker.placement.is_alone:
            broker.stale.drop_up_to(last_seqs)
        if broker.settings.statistics:
            broker.statistics.start()

    events.client_returned.add(
        broker.reconnect_window.on_client_returned, broker.placement.orphaned_temporaries.on_client_connected
    )
    events.client_connected.add(advisories.on_client_connected)
    events.client_disconnected.add(
        broker.transactions.give_up, broker.subscriptions.end_all, broker.producers.left, broker.temporaries.end,
        broker.bridges.on_client_disconnected, withdraw_blocked_sends, advisories.on_client_disconnected,
    )  # fmt: skip
    events.consumer_started.add(advisories.on_consumer_started)
    events.consumer_stopped.add(advisories.on_consumer_stopped, broker.windows.on_consumer_stopped)
    events.consumer_moved.add(advisories.on_consumer_moved)
    events.consumer_is_slow.add(broker.message_advisories.slow_consumer)
    events.topic_subscribers_changed.add(broker.message_advisories.on_subscribers_changed)
    events.durable_removed.add(advisories.on_durable_removed)
    events.producer_started.add(advisories.on_producer_started)
    events.producer_stopped.add(advisories.on_producer_stopped)
    events.bridge_started.add(advisories.on_bridge_started)
    events.bridge_stopped.add(advisories.bridge_stopped)
    events.destination_added.add(advisories.on_destination_added)
    events.destination_removed.add(advisories.on_destination_removed)
    events.retroactive_durable_created.add(broker.retained.created)
    events.logs_recovered.add(on_logs_recovered)
    events.queue_added.add(broker.consumers.on_queue_added)
