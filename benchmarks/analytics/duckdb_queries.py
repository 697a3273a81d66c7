"""The questions of the transforms, asked of DuckDB: SQL over a view `events` that gives the same rows."""

from __future__ import annotations

from pathlib import Path

import duckdb

from analytics.archive.event_columns import HIVE_TYPES
from analytics.model.failure_patterns import GAP, LONGEST, UNKNOWN, VARIABLE
from analytics.model.measures import ARRIVALS, FAILURES, NEVER_STORED, REMOVALS, SERVED, SETTLEMENTS, WITHOUT_MESSAGE
from analytics.requests.request import TimeWindow

THREADS = 2


def connect(archive: Path, *windows: TimeWindow) -> duckdb.DuckDBPyConnection:
    """DuckDB with the events of these windows as the view `events`, and those of all time as `archive`."""
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'UTC'; SET threads = {THREADS}")
    types = ", ".join(f"'{name}': {type}" for name, type in HIVE_TYPES.items())
    connection.execute(
        f"CREATE VIEW archive AS FROM read_parquet('{archive}/**/*.parquet', hive_partitioning = true,"
        f" hive_types = {{{types}}})"
    )
    within = " OR ".join(f"(ts >= {_moment(each.since_us)} AND ts < {_moment(each.until_us)})" for each in windows)
    connection.execute(f"CREATE VIEW events AS FROM archive WHERE {within}")
    return connection


def _moment(us: int) -> str:
    return f"make_timestamptz({us}::BIGINT)"


def _listed(texts: tuple[str, ...]) -> str:
    return ", ".join(f"'{each}'" for each in texts)


#: Events that never took a copy from where it waits, and those that tell how fast copies are taken.
NEVER = f"(kind = 'drop' AND coalesce(reason, '') IN ({_listed(NEVER_STORED)}))"
TAKEN = f"(kind IN ({_listed(SERVED)}) AND NOT {NEVER})"
HAPPENED = f"kind NOT IN ({_listed(WITHOUT_MESSAGE)})"


def _messages(*kinds: str) -> str:
    return f"coalesce(sum(weight) FILTER (kind IN ({_listed(kinds)})), 0)::BIGINT"


def _size_of(kind: str) -> str:
    return f"coalesce(sum(size * weight) FILTER (kind = '{kind}'), 0)::BIGINT"


def _last(*kinds: str) -> str:
    return f"max(ts) FILTER (kind IN ({_listed(kinds)}))"


def _slot(seconds: int, at: str = "ts") -> str:
    return f"time_bucket(INTERVAL {seconds} SECONDS, {at}, TIMESTAMPTZ '1970-01-01')"


def traffic(seconds: int) -> str:
    """As transforms.traffic."""
    return f"""SELECT destination, {_slot(seconds)} AS slot,
        {_messages("enqueue")} AS sent, {_messages("forward")} AS stored, greatest(sent, stored) AS arrived,
        {_messages("dispatch")} AS dispatched, {_messages("ack")} AS acked, {_messages("rollback")} AS rolled_back,
        {_size_of("enqueue")} AS bytes_sent, greatest(bytes_sent, {_size_of("forward")}) AS bytes, count(*) AS events
        FROM events WHERE {HAPPENED} GROUP BY destination, slot"""


def latency(*by: str) -> str:
    """Exact percentiles of the time to the ack, nearest rank; transforms.latency has them from histograms."""
    keys = ", ".join(by)
    return f"""SELECT {keys}, count(*) AS messages, quantile_disc(us, [0.5, 0.95, 0.99]) AS found
        FROM (SELECT destination, consumer, ts, greatest(epoch_us(ts) - epoch_us(born), 1) AS us
              FROM events WHERE kind = 'ack' AND ts >= born) GROUP BY {keys}"""


def latency_over_time(seconds: int) -> str:
    """The same by destination and slot."""
    return latency("destination", _slot(seconds))


def ways() -> str:
    """As transforms.routes_of."""
    return f"""SELECT original, destination,
        {_messages("enqueue")} AS sent, {_size_of("enqueue")} AS bytes_sent,
        {_messages("forward")} AS copies, {_size_of("forward")} AS bytes_copied,
        {_messages("dispatch")} AS dispatched, {_messages("ack")} AS acked,
        {_last("enqueue", "forward")} AS last_arrived, {_last("dispatch", "ack")} AS last_read, count(*) AS events
        FROM events WHERE {HAPPENED} GROUP BY original, destination"""


def copies() -> str:
    """Those of the columns of `ways` that hit rates need."""
    return f"""SELECT original, destination, {_messages("enqueue")} AS sent, {_messages("forward")} AS copies,
        count(*) AS events FROM events WHERE {HAPPENED} GROUP BY original, destination"""


def clients(window: TimeWindow) -> str:
    """As transforms.clients."""
    at = f"(epoch_us(ts) // 1000 - {window.since_us // 1000})"  # epoch_ms would round
    young = f"born >= {_moment(window.since_us)}"
    ends = f"(kind IN ({_listed(SETTLEMENTS)}) AND consumer IS NOT NULL)"
    return f"""SELECT destination, consumer AS client,
        {_messages("enqueue")} AS sent, {_size_of("enqueue")} AS bytes_sent, {_messages("rollback")} AS rolled_back,
        {_messages("forward")} AS arrived, {_messages("dispatch")} AS dispatched,
        {_messages("ack")} AS acked, {_size_of("ack")} AS bytes_acked,
        {_messages("redeliver")} AS redelivered, {_messages(*SETTLEMENTS)} AS ended,
        coalesce(sum(weight) FILTER (kind = 'dispatch' AND {young}), 0)::BIGINT AS given,
        coalesce(sum(weight) FILTER ({ends} AND {young}), 0)::BIGINT AS finished,
        coalesce(sum(CASE WHEN {ends} THEN {at} WHEN kind = 'dispatch' THEN -{at} ELSE 0 END * weight)
                 FILTER ({young}), 0)::BIGINT AS held_ms,
        {_last("dispatch")} AS last_dispatched, {_last(*SETTLEMENTS)} AS last_ended,
        {_last("subscribe")} AS began_at, {_last("unsubscribe")} AS left_at,
        min(ts) FILTER (kind IN ('subscribe', 'dispatch')) AS came_at, count(*) AS events
        FROM events WHERE kind <> 'depth' GROUP BY destination, consumer"""


def depths(window: TimeWindow, seconds: int) -> str:
    """Depths at the end of each slot by what brokers noted, and by what came and went since the last note."""
    arrived, removed = _listed(ARRIVALS), _listed(REMOVALS)
    change = f"CASE WHEN kind IN ({arrived}) THEN weight WHEN kind IN ({removed}) THEN -weight ELSE 0 END"
    return f"""WITH
        slots AS (SELECT make_timestamptz(({window.since_us} + unnest(range(1, {_slots(window, seconds)} + 1))
                         * {seconds * 1_000_000})::BIGINT) AS until),
        notes AS (SELECT broker, destination, ts, size FROM events WHERE kind = 'depth'),
        changes AS (SELECT *, sum(change) OVER (PARTITION BY broker, destination ORDER BY ts) AS level FROM
                    (SELECT broker, destination, ts, sum({change}) AS change FROM events
                     WHERE NOT {NEVER} AND {HAPPENED} GROUP BY ALL)),
        logs AS (SELECT DISTINCT broker, destination FROM notes),
        ends AS (SELECT * FROM logs, slots),
        noted AS (SELECT ends.*, notes.ts AS noted_at, notes.size FROM ends ASOF JOIN notes
                  ON ends.broker = notes.broker AND ends.destination = notes.destination AND ends.until > notes.ts),
        now AS (SELECT n.*, coalesce(c.level, 0) AS level FROM noted n ASOF LEFT JOIN changes c
                ON n.broker = c.broker AND n.destination = c.destination AND n.until > c.ts)
        SELECT n.broker, n.destination, n.until, n.size + n.level - coalesce(c.level, 0) AS depth FROM now n
        ASOF LEFT JOIN changes c ON n.broker = c.broker AND n.destination = c.destination AND n.noted_at > c.ts"""


def oldest(window: TimeWindow, seconds: int) -> str:
    """The arrival of the oldest message that waits at the end of each slot, from arrival to first removal."""
    arrived, removed = _listed(ARRIVALS), _listed(REMOVALS)
    return f"""WITH
        slots AS (SELECT make_timestamptz(({window.since_us} + unnest(range(1, {_slots(window, seconds)} + 1))
                         * {seconds * 1_000_000})::BIGINT) AS until),
        copies AS (SELECT broker, destination, msg_id, min(born) AS born,
                   coalesce(min(ts) FILTER (kind IN ({arrived})), {_moment(0)}) AS came,
                   coalesce(min(ts) FILTER (kind IN ({removed})), 'infinity') AS gone
                   FROM events WHERE kind IN ({arrived}, {removed}) AND NOT {NEVER}
                   AND destination NOT LIKE 'topic:%' GROUP BY ALL)
        SELECT broker, destination, until, min(born) AS born FROM slots
        JOIN copies ON came < until AND gone >= until GROUP BY ALL"""


def service(seconds: int) -> str:
    """As transforms.lag.service, with the start of the slot in place of its number."""
    ages = "epoch_us(ts) - epoch_us(born)"
    return f"""SELECT broker, destination, {_slot(seconds)} AS slot, {_messages(*ARRIVALS)} AS arrived,
        {_messages(*SERVED)} AS served, {_messages("ack")} AS acked,
        coalesce(sum({ages} * weight) FILTER (kind = 'ack' AND ts >= born), 0) AS age_us
        FROM events WHERE kind IN ({_listed(ARRIVALS)}, {_listed(REMOVALS)}) AND NOT {NEVER}
        AND destination NOT LIKE 'topic:%' GROUP BY ALL"""


def _slots(window: TimeWindow, seconds: int) -> int:
    return -(-(window.until_us - window.since_us) // (seconds * 1_000_000))


def causes(seconds: int) -> str:
    """As transforms.causes, without examples."""
    # RE2 has no look-behind; words are tried from their beginning without it, too, because matches do not overlap.
    variable = VARIABLE.replace(r"(?<![\w-])", "").replace("'", "''")
    alike = f"regexp_replace(trim(coalesce(reason, '')), '{variable}', '{GAP}', 'g')"
    cause = f"substr(regexp_replace({alike}, '{GAP}(\\s*{GAP})+', '{GAP}', 'g'), 1, {LONGEST})"
    return f"""SELECT kind AS outcome, CASE {cause} WHEN '' THEN '{UNKNOWN}' ELSE {cause} END AS cause, destination,
        consumer, {_slot(seconds)} AS slot, sum(weight)::BIGINT AS messages, min(ts) AS first, max(ts) AS last,
        arg_max(msg_id, (ts, msg_id)) AS example, arg_max(reason, (ts, msg_id)) AS example_reason, count(*) AS events
        FROM events WHERE kind IN ({_listed(FAILURES)}) GROUP BY ALL"""


def repeats() -> str:
    """As transforms.repeats, without examples."""
    return f"""SELECT destination,
        coalesce(sum(weight) FILTER (acks > 0), 0)::BIGINT AS messages,
        coalesce(sum(weight) FILTER (redeliveries > 0), 0)::BIGINT AS redelivered,
        sum(redeliveries)::BIGINT AS redeliveries, max(redeliveries // weight)::BIGINT AS most,
        coalesce(sum(weight) FILTER (acks > weight), 0)::BIGINT AS duplicated,
        coalesce(sum(weight) FILTER (acks > weight AND brokers > 1), 0)::BIGINT AS across, sum(events)::BIGINT AS events
        FROM (SELECT *, CASE WHEN given >= returned THEN returns ELSE greatest(returns - weight, 0) END AS redeliveries
              FROM (SELECT destination, msg_id, {_messages("ack")} - {_messages("bridge_forward")} AS acks,
                           {_messages("redeliver")} AS returns, {_last("redeliver")} AS returned,
                           {_last("dispatch")} AS given,
                           max(weight) AS weight, count(DISTINCT broker) AS brokers, count(*) AS events
                    FROM events WHERE kind IN ('ack', 'dispatch', 'redeliver', 'bridge_forward')
                    GROUP BY destination, msg_id, CASE WHEN destination LIKE '%topic://%' THEN consumer END)
              WHERE acks <> 0 OR returns > 0)
        GROUP BY destination"""


def weeks(window: TimeWindow, seconds: int) -> str:
    """As transforms.weeks."""
    week = f"((epoch_us({_moment(window.until_us)}) - 1 - epoch_us(ts)) // 604800000000)"
    slot = _slot(seconds, "ts + week::INTEGER * INTERVAL 7 DAYS")
    return f"""SELECT destination, week::INTEGER AS week, {slot} AS slot,
        greatest({_messages("enqueue")}, {_messages("forward")}) AS arrived, {_messages("ack")} AS acked,
        {_messages("dead_letter")} AS failed, count(*) AS events
        FROM (SELECT *, {week} AS week FROM events)
        WHERE kind IN ('enqueue', 'forward', 'ack', 'dead_letter') GROUP BY destination, week, slot"""
