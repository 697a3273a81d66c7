"""Interprets the headers of SUBSCRIBE and UNSUBSCRIBE: ActiveMQ's options and Artemis' names."""

from __future__ import annotations

from brokerapp.model.broker_path import (
    CONSUMERS_HEADER,
    EXCEPT_HEADER,
    PATH_HEADER,
    SUPPRESS_HEADER,
    TO_HEADER,
    TTL_HEADER,
)
from brokerapp.model.subscription_identity import check_subscription_name
from brokerapp.stomp.send_headers import whole_number

ACTIVEMQ_OPTION = "activemq."
#: What only a bridge says when it subscribes.
BRIDGE_HEADERS = (TO_HEADER, TTL_HEADER, PATH_HEADER, CONSUMERS_HEADER, SUPPRESS_HEADER, EXCEPT_HEADER)
#: Headers that name a durable subscription, the first that is there counts: Artemis' two, and ActiveMQ's.
SUBSCRIPTION_NAMES = ("durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName")
#: Artemis' bytes that a consumer may hold unacknowledged. What counts here are messages, so only 0 means something:
#: one at a time.
WINDOW_SIZE_HEADER = "consumer-window-size"


def subscription_name(headers: dict[str, str]) -> str | None:
    """Return the name of the durable subscription, if there is one."""
    return next((headers[each] for each in SUBSCRIPTION_NAMES if each in headers), None)


def options_of(headers: dict[str, str], *, of_bridge: bool) -> dict[str, str]:
    """Return the options of a SUBSCRIBE by name. Raises RequestRefused."""
    options = {
        name[len(ACTIVEMQ_OPTION) :]: value
        for name, value in headers.items()
        if name.startswith(ACTIVEMQ_OPTION) and name[len(ACTIVEMQ_OPTION) :] not in BRIDGE_HEADERS
    }
    if (name := subscription_name(headers)) is not None:
        check_subscription_name(name)
        options["subscriptionName"] = name
    if WINDOW_SIZE_HEADER in headers and not whole_number(WINDOW_SIZE_HEADER, headers[WINDOW_SIZE_HEADER]):
        options.setdefault("prefetchSize", "1")
    if of_bridge:
        options |= {name: headers[name] for name in BRIDGE_HEADERS if name in headers}
    return options
