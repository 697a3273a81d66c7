"""The options of SUBSCRIBE: what its client asks for beside a destination, as the broker understands it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility, BridgeFilterCounts
from brokerapp.errors import RequestRefused
from brokerapp.model.broker_path import (
    CONSUMERS_HEADER,
    EXCEPT_HEADER,
    PATH_HEADER,
    SUPPRESS_HEADER,
    TO_HEADER,
    TTL_HEADER,
    parse_path,
)
from brokerapp.model.commands import SubscribeCommand
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import Selector

MAX_DIGITS = 9  #: of a number among the options
PRIORITIES = range(-128, 128)  #: of consumers, which ActiveMQ's clients send as one byte
DEFAULT_PRIORITY = 0
_IS_NUMBER = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}").fullmatch
#: The options by which a broker of the cluster says for whom it consumes: the client of a named subscription; the user,
#: and the user's groups in JSON, where there are rights.
CLIENT_OPTION, USER_OPTION, GROUPS_OPTION = "sluice.clientId", "sluice.user", "sluice.groups"


def subscription_identity(
    client: Client, subscribe: SubscribeCommand, topics: tuple[Destination, ...]
) -> SubscriptionIdentity | None:
    """The named subscription that is to be consumed; None for one that has no name. Raises RequestRefused."""
    options = subscribe.options
    name = options.get("subscriptionName")
    client_id = client.client_id if client.has_client_id else ""
    if client.cluster_member:  # another broker consumes for a client of its own
        client_id = options.get(CLIENT_OPTION, "")
    by_default = str(client.shares_client_id).lower()  # as in Artemis: who shares the id shares what is kept for it
    shared = options.get("shared", by_default).lower() == "true"
    if name is None:
        if "shared" in options:
            raise RequestRefused("activemq.shared without activemq.subscriptionName: a shared subscription has a name")
        return None
    return SubscriptionIdentity(
        client_id, name, topics, subscribe.selector,
        no_local=is_true(options, "noLocal"), shared=shared, durable=options.get("durable", "true").lower() == "true",
        groups=tuple(sorted((delegated_principal(client, options) or client.principal).groups)),
        leads_to=options.get(TO_HEADER, "") if client.is_broker else "",
    )  # fmt: skip


def delegated_principal(client: Client, options: Mapping[str, str]) -> Principal | None:
    """For whom another broker of the cluster consumes; None where the client is it itself."""
    if not client.cluster_member or USER_OPTION not in options:
        return None
    return Principal(options[USER_OPTION], frozenset(json.loads(options[GROUPS_OPTION])))


def bridge_eligibility_of(
    client: Client, options: Mapping[str, str], selector: Selector | None
) -> BridgeEligibility | None:
    """Return which messages a bridge of another broker may take; None for other consumers."""
    if TO_HEADER not in options or not client.is_broker:
        return None
    ttl, path = number_of(options, TTL_HEADER, 1), parse_path(options.get(PATH_HEADER, ""))
    consumers = frozenset(parse_path(options.get(CONSUMERS_HEADER, "")))
    yields, excepted = options.get(SUPPRESS_HEADER) == "true", parse_path(options.get(EXCEPT_HEADER, ""))
    return BridgeEligibility(
        options[TO_HEADER],
        ttl,
        path,
        selector,
        client.bridge_counts or BridgeFilterCounts(),
        consumers,
        yields,
        excepted,
    )


def is_true(options: Mapping[str, str], name: str) -> bool:
    """Whether an option is set."""
    return options.get(name, "").lower() == "true"


def subscription_name(id: str | None, destination: str | None) -> str:
    """Return the key of a client's subscription: its id, or else the destination."""
    return id if id is not None else str(destination)


def priority_of(options: Mapping[str, str]) -> int:
    """That of a consumer; as in ActiveMQ one that is none, being too large or too small, is the usual one."""
    priority = number_of(options, "priority", DEFAULT_PRIORITY)
    return priority if priority in PRIORITIES else DEFAULT_PRIORITY


def number_of(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole number among the options of a subscription; raises RequestRefused."""
    text = options.get(name)
    if text is None:
        return default
    if not _IS_NUMBER(text.strip()):
        raise RequestRefused(f"activemq.{name}:{text[:40]} is not a whole number of at most {MAX_DIGITS} digits")
    return int(text)
