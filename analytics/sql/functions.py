"""The functions that SQL statements may call, each with an example that tests run on Spark. Pure.

Left out on purpose: what reads files, settings, the host or the session; what runs code; regular expressions, which can
take unlimited time on one text; and functions that make one value of unlimited size of others (repeat, collect_list,
replace), which could exhaust Spark's memory.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function, and an expression over the view `deliveries` or `messages` that calls it."""

    name: str
    example: str
    view: str = "deliveries"


def _of(view: str, **examples: str) -> tuple[SqlFunction, ...]:
    return tuple(SqlFunction(name, example, view) for name, example in examples.items())


AGGREGATES = _of(
    "deliveries",
    count="count(*), count(DISTINCT destination)",
    count_if="count_if(redeliveries > 0)",
    sum="sum(size) FILTER (WHERE outcome = 'acknowledged')",
    avg="avg(latency_ms)",
    min="min(arrived_at)",
    max="max(arrived_at)",
    min_by="min_by(message_id, arrived_at)",
    max_by="max_by(message_id, latency_ms)",
    any_value="any_value(reason)",
    bool_and="bool_and(size > 0)",
    bool_or="bool_or(size > 0)",
    stddev="stddev(latency_ms)",
    variance="variance(latency_ms)",
    corr="corr(latency_ms, size)",
    percentile_approx="percentile_approx(latency_ms, 0.95)",
    approx_count_distinct="approx_count_distinct(consumer)",
)
WINDOWS = _of(
    "deliveries",
    row_number="row_number() OVER (PARTITION BY destination ORDER BY arrived_at)",
    rank="rank() OVER (ORDER BY size DESC)",
    dense_rank="dense_rank() OVER (ORDER BY size)",
    ntile="ntile(4) OVER (ORDER BY latency_ms)",
    lag="lag(arrived_at) OVER (PARTITION BY destination ORDER BY arrived_at)",
    lead="lead(arrived_at, 1) OVER (PARTITION BY destination ORDER BY arrived_at)",
    first_value="first_value(size) OVER (PARTITION BY destination ORDER BY arrived_at)",
    last_value="last_value(size) OVER (ORDER BY arrived_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
)
TIMES = _of(
    "deliveries",
    date_trunc="date_trunc('hour', arrived_at)",
    to_date="to_date(arrived_at)",
    to_timestamp="to_timestamp('2026-01-31 07:00:00')",
    date_format="date_format(arrived_at, 'yyyy-MM-dd HH:mm')",
    year="year(arrived_at)",
    month="month(arrived_at)",
    day="day(arrived_at)",
    dayofweek="dayofweek(arrived_at)",
    hour="hour(arrived_at)",
    minute="minute(arrived_at)",
    second="second(arrived_at)",
    unix_seconds="unix_seconds(arrived_at)",
    unix_millis="unix_millis(arrived_at)",
    unix_micros="unix_micros(arrived_at)",
    timestamp_seconds="timestamp_seconds(unix_seconds(arrived_at))",
    timestamp_millis="timestamp_millis(unix_millis(arrived_at))",
    date_add="date_add(to_date(arrived_at), 1)",
    date_sub="date_sub(to_date(arrived_at), 1)",
    datediff="datediff(ended_at, arrived_at)",
    extract="extract(MINUTE FROM arrived_at)",
    from_utc_timestamp="from_utc_timestamp(arrived_at, 'Europe/Berlin')",
)
TEXTS = _of(
    "deliveries",
    lower="lower(destination)",
    upper="upper(destination)",
    length="length(message_id)",
    trim="trim(reason)",
    substring="substring(destination, 9, 20)",
    left="left(destination, 5)",
    right="right(destination, 5)",
    split_part="split_part(destination, '://', 2)",
    instr="instr(destination, '.')",
    startswith="startswith(destination, 'queue://')",
    endswith="endswith(destination, '.eu')",
    contains="contains(destination, 'orders')",
    concat="concat(destination, ' ', outcome)",
    concat_ws="concat_ws(' ', destination, reason)",
)
NUMBERS = _of(
    "deliveries",
    abs="abs(latency_ms)",
    round="round(latency_ms, 1)",
    floor="floor(latency_ms)",
    ceil="ceil(latency_ms)",
    sign="sign(latency_ms)",
    sqrt="sqrt(size)",
    exp="exp(redeliveries)",
    ln="ln(size)",
    log2="log2(size)",
    log10="log10(size)",
    power="power(size, 2)",
    mod="mod(size, 10)",
    greatest="greatest(size, dispatches)",
    least="least(size, dispatches)",
    try_divide="try_divide(size, redeliveries)",
)
VALUES = (
    SqlFunction("if", "if(size > 100, 'large', 'small')"),
    *_of(
        "deliveries",
        coalesce="coalesce(reason, 'none')",
        nullif="nullif(reason, '')",
        nvl="nvl(reason, 'none')",
        ifnull="ifnull(reason, 'none')",
        cast="cast(size AS double)",
        try_cast="try_cast(message_id AS bigint)",
    ),
)
MAPS = _of(
    "messages",
    element_at="element_at(properties, 'region')",
    try_element_at="try_element_at(numbers, 'amount')",
    map_contains_key="map_contains_key(properties, 'region')",
    map_keys="map_keys(properties)",
    map_values="map_values(numbers)",
    cardinality="cardinality(properties)",
    explode="explode(map_keys(properties))",
    get_json_object="get_json_object(properties['region'], '$.name')",
)
#: Functions by group, in the order in which pages and docs/sql.md list them.
GROUPS = {
    "Aggregates": AGGREGATES,
    "Windows": WINDOWS,
    "Times": TIMES,
    "Texts": TEXTS,
    "Numbers": NUMBERS,
    "Values": VALUES,
    "Properties": MAPS,
}
FUNCTIONS: dict[str, SqlFunction] = {each.name: each for group in GROUPS.values() for each in group}
