"""Statements from which users of the SQL page start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SqlExample:
    """A statement with the chart that fits it."""

    title: str
    statement: str
    chart: Mapping[str, str] = field(default_factory=dict)


EXAMPLES = (
    SqlExample(
        "Messages by destination and hour",
        """SELECT date_trunc('hour', sent_at) AS hour,
  destination, sum(weight) AS messages
FROM messages
GROUP BY ALL
ORDER BY hour, messages DESC""",
        {"chart": "area", "x": "hour", "y": "messages", "series": "destination"},
    ),
    SqlExample(
        "Latency percentiles",
        """SELECT destination, count(*) AS acknowledged,
  percentile_approx(latency_ms, 0.5) AS p50_ms,
  percentile_approx(latency_ms, 0.95) AS p95_ms
FROM deliveries
WHERE outcome = 'acknowledged'
GROUP BY destination
ORDER BY p95_ms DESC""",
        {"chart": "bar", "x": "destination", "y": "p95_ms"},
    ),
    SqlExample(
        "Slowest messages",
        """SELECT message_id, destination, consumer,
  arrived_at, dispatched_at, acknowledged_at, latency_ms
FROM deliveries
WHERE latency_ms IS NOT NULL
ORDER BY latency_ms DESC
LIMIT 100""",
    ),
    SqlExample(
        "Dead letters by producer",
        """SELECT m.producer, d.destination, d.reason,
  count(*) AS dead_letters
FROM dead_letters d
JOIN messages m ON m.message_id = d.message_id AND m.broker = d.broker
GROUP BY ALL
ORDER BY dead_letters DESC""",
        {"chart": "stacked", "x": "destination", "y": "dead_letters", "series": "producer"},
    ),
    SqlExample(
        "Messages by a property",
        """SELECT properties['region'] AS region,
  sum(weight) AS messages, sum(numbers['amount'] * weight) AS amount
FROM messages
WHERE map_contains_key(properties, 'region')
GROUP BY ALL
ORDER BY messages DESC""",
        {"chart": "bar", "x": "region", "y": "messages"},
    ),
    SqlExample(
        "Highest depths",
        """SELECT destination, max(messages) AS highest,
  max_by(recorded_at, messages) AS at
FROM depths
GROUP BY destination
ORDER BY highest DESC
LIMIT 50""",
        {"chart": "bar", "x": "destination", "y": "highest"},
    ),
)
