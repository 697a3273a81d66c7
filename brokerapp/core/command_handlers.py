"""Connect what clients ask with the parts of a broker that do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brokerapp.core.broker import Broker
from brokerapp.core.subscriptions.subscribe_handler import SubscribeHandler
from brokerapp.core.subscriptions.unsubscribe_handler import UnsubscribeHandler
from brokerapp.engine.clients.client import Client
from brokerapp.model.commands import (
    AckBatchCommand,
    BeginBranchCommand,
    ClientCommand,
    CommitBranchCommand,
    GiveUpCommand,
    NackCommand,
    PrefetchCommand,
    PrepareBranchCommand,
    ProducerCommand,
    PullCommand,
    RecoverBranchesCommand,
    RollBackBranchCommand,
    RollBackOnlyCommand,
    SendBatchCommand,
    SubscribeCommand,
    UnsubscribeCommand,
    WindowCommand,
)


def command_handlers(broker: Broker) -> dict[type[ClientCommand], Callable[[Client, Any], None]]:
    """Return the handlers of a broker, by the commands that they perform. Each may raise RequestRefused."""
    subscribe = SubscribeHandler(
        browsers=broker.browsers, durables=broker.durables, placement=broker.placement, replies=broker.replies,
        routing=broker.routing, served=broker.served, sources=broker.sources, subscriptions=broker.subscriptions,
    )  # fmt: skip
    unsubscribe = UnsubscribeHandler(
        authorizer=broker.authorizer, consumers=broker.consumers, durables=broker.durables,
        placement=broker.placement, replies=broker.replies, subscriptions=broker.subscriptions,
    )  # fmt: skip
    return {
        SendBatchCommand: broker.publisher.send,
        SubscribeCommand: subscribe.subscribe,
        UnsubscribeCommand: unsubscribe.unsubscribe,
        AckBatchCommand: broker.rejections.settle,
        NackCommand: broker.rejections.reject,
        GiveUpCommand: broker.rejections.give_up,
        WindowCommand: broker.windows.extend,
        PrefetchCommand: broker.windows.change_prefetch,
        PullCommand: broker.windows.pull,
        ProducerCommand: broker.admission.open_or_close,
        RollBackOnlyCommand: broker.transactions.require_rollback,
        BeginBranchCommand: broker.prepared.begin,
        PrepareBranchCommand: broker.prepared.prepare,
        CommitBranchCommand: broker.prepared.commit,
        RollBackBranchCommand: broker.prepared.roll_back,
        RecoverBranchesCommand: broker.prepared.recover,
    }
