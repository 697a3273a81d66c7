"""Translate what a ConsumerInfo asks for into options of a subscription. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.openwire.commands import ConsumerInfo


def subscribe_options(info: ConsumerInfo) -> Mapping[str, str]:
    """Return the options of a SUBSCRIBE (`activemq.*`, without that prefix) that ask for the same."""
    options = {"prefetchSize": str(info.prefetch_size)}
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
