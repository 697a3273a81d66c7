"""Builds the handlers of operators' requests from the parts of a broker, once per node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from brokerapp.admin.handlers.bulk_moves import BulkMoves
from brokerapp.admin.handlers.cluster_changes import ClusterChanges
from brokerapp.admin.handlers.connection_reports import ConnectionReports
from brokerapp.admin.handlers.destination_operations import CreateOperations, DeleteOperations
from brokerapp.admin.handlers.destination_statistics import DestinationStatistics
from brokerapp.admin.handlers.message_operations import MessageOperations
from brokerapp.admin.handlers.message_transfer import MessageTransfer
from brokerapp.admin.handlers.operator_send import OperatorSend
from brokerapp.admin.handlers.queue_operations import QueueOperations
from brokerapp.admin.handlers.recorded_changes import RecordedChanges
from brokerapp.admin.handlers.request_handler import Handler
from brokerapp.admin.handlers.route_explainer import RouteExplainer
from brokerapp.core.broker import Broker


@dataclass(frozen=True)
class AdminHandlers:
    """The handlers of one node: of operators' requests by verb, and of changes that its cluster recorded."""

    by_verb: dict[str, Handler]
    recorded_changes: RecordedChanges


def build_handlers(
    broker: Broker, *, pump: Callable[[], None], refresh: Callable[[], Awaitable[None]]
) -> AdminHandlers:
    """Build the handlers of a node.

    `pump` requests a round of dispatching; `refresh` applies the active definitions.
    """
    context, placement = broker.context(), broker.placement
    transfer = MessageTransfer(
        context=context, queues=broker.queues, creation=broker.creation, temporaries=broker.temporaries,
        dead_letters=broker.dead_letters, router=broker.router, arrivals=broker.arrivals,
    )  # fmt: skip
    moves = BulkMoves(
        context=context, transfer=transfer, dead_letters=broker.dead_letters, dispatcher=broker.dispatcher
    )
    steps = MessageOperations(
        context=context, transfer=transfer, admission=broker.admission, messages=broker.messages, limits=broker.limits,
        dispatcher=broker.dispatcher,
    )  # fmt: skip
    queues = QueueOperations(
        context=context, queues=broker.queues, dispatcher=broker.dispatcher, transfer=transfer, pump=pump
    )
    cluster = ClusterChanges(cluster=lambda: broker.cluster, creation=broker.creation)
    creation = CreateOperations(context=context, creation=broker.creation, durables=broker.durables, cluster=cluster)
    deletion = DeleteOperations(
        context=context, queues=broker.queues, durables=broker.durables, removal=broker.removal,
        subscribers=broker.subscribers, listeners=placement.topic_listeners, queue_operations=queues, cluster=cluster,
    )  # fmt: skip
    recorded_changes = RecordedChanges(
        context=context, queues=broker.queues, durables=broker.durables, subscriptions=broker.subscriptions,
        removal=broker.removal, deletion=deletion,
    )  # fmt: skip
    connections = ConnectionReports(
        clients=broker.clients, connections=broker.connections, durables=broker.durables, timers=broker.timers,
        pump=pump,
    )  # fmt: skip
    send = OperatorSend(
        context=context, creation=broker.creation, subscribers=broker.subscribers, producers=broker.producers,
        messages=broker.messages, publisher=broker.publisher, routing=broker.routing, scheduler=broker.scheduler,
        branches=broker.branches,
    )  # fmt: skip
    routes = RouteExplainer(
        routing=broker.routing, queues=broker.queues, durables=broker.durables, listeners=placement.topic_listeners
    )
    statistics = DestinationStatistics(
        counters=broker.counters, gauges=broker.gauges, is_local=placement.is_local, totals=placement.stats_aggregation
    )
    by_verb: dict[str, Handler] = {
        "purge": queues.purge,
        "create": creation.create,
        "create_subscription": creation.create_subscription,
        "delete": deletion.delete,
        "forget_waiting": send.cancel_scheduled,
        "refresh": refresh,
        "pause": queues.pause,
        "numbers": statistics.numbers,
        "groups": queues.groups,
        "forget_groups": queues.reset_groups,
        "forget_selectors": queues.delete_selectors,
        "cluster": cluster.status,
        "peers": connections.peers,
        "offline": connections.offline,
        "close_connection": connections.close_connection,
        "end_transaction": send.end_transaction,
        "move": moves.move,
        "copy": moves.copy,
        "retry": moves.resubmit,
        "remove": moves.remove,
        "step": steps.step,
        "edit": steps.edit,
        "send": send.send,
        "routes": send.routes,
        "explain": routes.explain,
        "circumstances": routes.routing_context,
    }
    return AdminHandlers(by_verb, recorded_changes)
