"""Translate what a ConsumerInfo asks for into options of a subscription. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.openwire.commands import ConsumerInfo
from brokerapp.openwire.commands import data_types as t

#: What clients ask for when nobody told them otherwise, which is left to the policies of the broker, as in ActiveMQ.
DEFAULT_PREFETCH = {t.QUEUE: 1000, t.TEMP_QUEUE: 1000, t.TOPIC: 32766, t.TEMP_TOPIC: 32766}
DEFAULT_BROWSER_PREFETCH, DEFAULT_DURABLE_PREFETCH = 500, 100


def default_prefetch(info: ConsumerInfo) -> int | None:
    """Return what a client asks for that was not told otherwise; None where there is no destination."""
    if info.browser:
        return DEFAULT_BROWSER_PREFETCH
    if info.subscription_name is not None:
        return DEFAULT_DURABLE_PREFETCH
    return DEFAULT_PREFETCH.get(info.destination.kind) if info.destination is not None else None


def subscribe_options(info: ConsumerInfo) -> Mapping[str, str]:
    """Return the options of a SUBSCRIBE (`activemq.*`, without that prefix) that ask for the same."""
    options: dict[str, str] = {}
    if info.prefetch_size != default_prefetch(info):
        options["prefetchSize"] = str(info.prefetch_size)
    if info.priority:
        options["priority"] = str(info.priority)
    if info.maximum_pending_message_limit:
        options["maximumPendingMessageLimit"] = str(info.maximum_pending_message_limit)
    if info.subscription_name is not None:
        options["subscriptionName"] = info.subscription_name
    for name, is_set in (
        ("exclusive", info.exclusive),
        ("retroactive", info.retroactive),
        ("noLocal", info.no_local),
        ("dispatchAsync", info.dispatch_async),
    ):
        if is_set:
            options[name] = "true"
    return options
