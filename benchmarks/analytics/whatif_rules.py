"""Twenty rules to try on recorded traffic, as a draft and as SQL: the same questions, written twice."""

from __future__ import annotations

from analytics.requests.request import TimeWindow
from analytics.requests.whatif_request import WhatIfRequest
from benchmarks.analytics import traffic
from brokerapp.engine.routing.routing_context import RoutingContext
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination

#: Where messages are sent to: selectors of the draft's legs there, beside the same condition in SQL.
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    traffic.ORDERS_IN: (
        ("region = 'eu'", "ps['region'] = 'eu'"),
        ("region <> 'eu'", "ps['region'] <> 'eu'"),
        ("region IN ('us', 'apac')", "ps['region'] IN ('us', 'apac')"),
        ("region LIKE '%p%'", "ps['region'] LIKE '%p%'"),
        ("n > 1000000", "pn['n'] > 1000000"),
        ("n BETWEEN 100000 AND 900000", "pn['n'] BETWEEN 100000 AND 900000"),
        ("region = 'eu' AND n < 500000", "ps['region'] = 'eu' AND pn['n'] < 500000"),
        ("NOT (region = 'us' OR n > 1500000)", "NOT (ps['region'] = 'us' OR pn['n'] > 1500000)"),
    ),
    traffic.TOPIC: (
        ("region = 'us'", "ps['region'] = 'us'"),
        ("region = 'apac' OR n < 1000", "ps['region'] = 'apac' OR pn['n'] < 1000"),
        ("n * 2 > 3000000", "pn['n'] * 2 > 3000000"),
        ("missing IS NOT NULL", "ps['missing'] IS NOT NULL"),
        ("region LIKE 'e_'", "ps['region'] LIKE 'e_'"),
        ("n >= 250000", "pn['n'] >= 250000"),
    ),
    traffic.PRICES: (
        ("region = 'eu'", "ps['region'] = 'eu'"),
        ("n < 750000", "pn['n'] < 750000"),
        ("region = 'moon'", "ps['region'] = 'moon'"),
    ),
    traffic.WORK[0]: (
        ("region = 'eu'", "ps['region'] = 'eu'"),
        ("n > 10", "pn['n'] > 10"),
        ("region IS NULL", "ps['region'] IS NULL"),
    ),
}


def _composite(name: str) -> CompositeDestination:
    own = Destination.parse(name)
    legs = [
        ForwardTarget(Destination.queue(f"Tried.{own.name}.{number}"), selector)
        for number, (selector, _) in enumerate(RULES[name])
    ]
    return CompositeDestination(own, tuple(legs))


#: What is tried.
TRIAL = WhatIfRequest(
    traffic.DEFINITIONS,
    Definitions(2, (VirtualTopic("VirtualTopic.>"), *map(_composite, RULES))),
    RoutingContext(tuple(Destination.parse(name).name for name in traffic.POOLS)),
)


def queries(_: TimeWindow, slot: int) -> list[str]:
    """What every leg takes over time, messages and bytes, and what was sent, stored and acknowledged where."""
    at = f"time_bucket(INTERVAL {slot} SECONDS, ts, TIMESTAMPTZ '1970-01-01')"
    columns = []
    for source, rules in RULES.items():
        for number, (_, condition) in enumerate(rules):
            holds = f"FILTER (destination = '{source}' AND ({condition}))"
            name = f"{Destination.parse(source).name}.{number}"
            columns.append(f'sum(weight) {holds} AS "{name}", sum(size * weight) {holds} AS "{name} bytes"')
    sources = ", ".join(f"'{each}'" for each in RULES)
    counts = ", ".join(f"sum(weight) FILTER (kind = '{kind}') AS {kind}" for kind in ("enqueue", "forward", "ack"))
    return [
        f"SELECT {at} AS slot, {', '.join(columns)} FROM events"
        f" WHERE kind = 'enqueue' AND destination IN ({sources}) GROUP BY slot",
        f"SELECT destination, {at} AS slot, {counts}, sum(size * weight) FILTER (kind = 'enqueue') AS bytes,"
        " min_by(size, ts) FILTER (kind = 'depth') AS waiting FROM events GROUP BY destination, slot",
    ]
