"""Test the views of SQL statements on Spark: against DuckDB on the same events, with limited rights, and the job."""

import re
from dataclasses import dataclass

import pytest

from analytics.jobs import sql_query
from analytics.requests.errors import AnalysisFailed
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.sql.access import DataAccess, PropertyMask
from analytics.sql.functions import FUNCTIONS
from analytics.sql.statement import CheckedStatement, check
from analytics.sql.views import SCHEMA_VERSION, VIEWS
from benchmarks.analytics import traffic
from brokerapp.tracing.schema import ORDER

pytestmark = pytest.mark.spark
EVENTS = 6_000
WINDOW = TimeWindow(traffic.START_US + 10 * traffic.MINUTE_US, traffic.START_US + 170 * traffic.MINUTE_US)
EVERYTHING = DataAccess()
#: What each view has, in DuckDB's words, over the archive's columns.
OUTCOMES = {"ack": "acknowledged", "dead_letter": "dead_lettered", "drop": "dropped", "move": "moved",
            "remove": "removed"}  # fmt: skip
_PLACE = "list_position(['" + "','".join(ORDER) + "'], kind)"
_LAST = "arg_max(kind, epoch_us(ts) * 32 + place) FILTER (kind IN ('ack', 'dead_letter', 'drop', 'move', 'remove'," \
    " 'forward', 'return', 'delay'))"  # fmt: skip
EXPECTED = {
    "messages": "SELECT msg_id AS message_id, epoch_us(ts) AS sent_at, destination, consumer AS producer, size,"
    " ps['region'] AS region, weight, broker FROM events WHERE kind = 'enqueue'",
    "deliveries": f"""
        WITH copies AS (
            SELECT *, {_PLACE} AS place, CASE WHEN destination LIKE 'topic://%' THEN coalesce(consumer, '') ELSE '' END
            AS subscriber FROM events WHERE kind IN ('forward', 'return', 'delay', 'dispatch', 'bridge_forward',
            'redeliver', 'ack', 'dead_letter', 'drop', 'move', 'remove'))
        SELECT msg_id AS message_id, destination, min(original) AS sent_to, epoch_us(min(born)) AS arrived_at,
            epoch_us(min(ts) FILTER (kind = 'forward')) AS stored_at,
            epoch_us(min(ts) FILTER (kind IN ('dispatch', 'bridge_forward'))) AS dispatched_at,
            epoch_us(max(ts) FILTER (kind = 'ack')) AS acknowledged_at, {_LAST} AS last,
            count(*) FILTER (kind IN ('dispatch', 'bridge_forward')) AS dispatches,
            count(*) FILTER (kind = 'redeliver') AS redeliveries,
            (epoch_us(max(ts) FILTER (kind = 'ack')) - epoch_us(min(born))) / 1000 AS latency_ms, max(size) AS size
        FROM copies GROUP BY broker, msg_id, destination, subscriber""",
    "dead_letters": "SELECT msg_id AS message_id, epoch_us(ts) AS dead_lettered_at, destination, original AS sent_to,"
    " reason, consumer, epoch_us(born) AS arrived_at, size, weight, broker FROM events WHERE kind = 'dead_letter'",
    "depths": "SELECT epoch_us(ts) AS recorded_at, destination, size AS messages, reason AS cause, broker FROM events"
    " WHERE kind = 'depth'",
    "events": "SELECT epoch_us(ts) AS ts, kind, msg_id AS message_id, destination, original AS sent_to, consumer AS"
    " client, size, epoch_us(born) AS arrived_at, reason, pn['n'] AS n, weight, broker FROM events",
}
#: Columns that are compared as something else.
_SHOWN = {"region": "properties['region'] AS region", "n": "numbers['n'] AS n"}


@pytest.fixture
def ask(events):
    """Run a statement as a job does: its rows, and all that it found."""

    def carry_out(statement, access=EVERYTHING, window=WINDOW, **parameters):
        def collect(title, frame, max_bytes):
            assert title
            return frame.toArrow()

        question = RunQuestion(window, lambda _: events, {"statement": statement, **parameters}, access=access, rows=7)
        found = sql_query.run(question, collect)
        return found.tables[0].rows.to_pylist(), found

    return carry_out


def rows_of(view, names, ask, access=EVERYTHING):
    """Return all rows of a view, with times in microseconds, ordered."""
    columns = {each.name: each for each in VIEWS[view].columns}
    shown = [
        f"unix_micros({name}) AS {name}" if name in columns and columns[name].type == "timestamp"
        else _SHOWN.get(name, name)
        for name in names
    ]  # fmt: skip
    rows = ask(f"SELECT {', '.join(shown)} FROM {view}", access)[0]
    return sorted((tuple(row.values()) for row in rows), key=str)


@pytest.mark.parametrize("view", EXPECTED)
def test_a_view_has_the_rows_that_duckdb_finds_in_the_same_events(view, ask, duck):
    found = duck.sql(EXPECTED[view]).to_arrow_table().to_pylist()
    if view == "deliveries":
        found = [each | {"outcome": OUTCOMES.get(each.pop("last"), "open")} for each in found]
    names = list(found[0])
    assert rows_of(view, names, ask) == sorted((tuple(row[name] for name in names) for row in found), key=str)
    assert len(found) > 5


def test_each_view_has_the_columns_and_types_of_the_table(spark, events):
    from analytics.transforms.sql.views import view_frames

    for name, frame in view_frames(events, DataAccess(), VIEWS).items():
        assert [(each.name, each.dataType.simpleString()) for each in frame.schema] == [
            (each.name, each.type) for each in VIEWS[name].columns
        ]


def test_all_functions_run(ask):
    for view in ("deliveries", "messages"):
        examples = [each for each in FUNCTIONS.values() if each.view == view]
        aggregates = [each for each in examples if each.name in ("count", "sum", "avg", "min", "max", "corr", "min_by",
                      "max_by", "count_if", "any_value", "bool_and", "bool_or", "stddev", "variance",
                      "percentile_approx", "approx_count_distinct")]  # fmt: skip
        for part in (aggregates, [each for each in examples if each not in aggregates]):
            if part:
                text = ", ".join(each.example for each in part)
                rows, _ = ask(f"SELECT count(*) AS n FROM (SELECT {text} FROM {view} WHERE size > 0)")
                assert rows[0]["n"] > 0, view


def test_rows_of_hidden_destinations_are_in_no_view(ask, duck):
    allowed = set(traffic.WORK)
    access = DataAccess(destinations=(("Work.>", "topic://Prices"), ("queue://Work.*",)), properties=None)
    for view in VIEWS:
        places = {row["destination"] for row in ask(f"SELECT DISTINCT destination FROM {view}", access)[0]}
        assert places, view
        assert places <= allowed, view
    count = duck.sql("SELECT count(*) FROM events WHERE destination LIKE 'queue://Work.%'")
    rows, found = ask("SELECT count(*) AS n, count(properties) AS p FROM events", access)
    assert rows == [{"n": count.fetchall()[0][0], "p": 0}]
    assert found.notes == ("Destinations that the user cannot view are left out; properties are hidden without"
                           " permission to browse messages.",)  # fmt: skip


def test_where_a_message_came_from_is_hidden_if_its_destination_is(ask):
    access = DataAccess(destinations=(("Consumer.Billing.>",),))
    rows = ask("SELECT DISTINCT destination, sent_to FROM deliveries", access)[0]
    assert rows == [{"destination": "queue://Consumer.Billing.VirtualTopic.Orders", "sent_to": None}]


def test_conditions_cannot_tell_of_hidden_rows_by_their_errors(ask):
    access = DataAccess(destinations=(("Work.0",),))
    rows, _ = ask("SELECT count(*) AS n FROM events WHERE CAST(substring(destination, 14, 5) AS int) = 0", access)
    assert rows[0]["n"] > 0


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("1 / (size - size)", r"Division by zero\. Use `try_divide` to tolerate .* and return NULL instead\.$"),
        ("CAST(destination AS int)", r"The value .\w+://.*. of the type .STRING. cannot be cast to .INT. because"),
    ],
)
def test_values_with_which_a_statement_cannot_be_computed_are_named_without_codes_and_settings(ask, expression, said):
    with pytest.raises(AnalysisFailed, match=said) as failed:
        ask(f"SELECT {expression} AS x FROM messages")
    assert not re.search("SQLSTATE|Exception|CAST_INVALID_INPUT|spark", str(failed.value))


def test_masked_properties_are_masked_in_the_views(ask):
    access = DataAccess(
        properties=(("VirtualTopic.>", "Orders.>"),),
        masks=(PropertyMask("REG*", "last4", ""), PropertyMask("n", "remove", ""), PropertyMask("*", "replace", "#")),
        masks_reasons=True,
        spared=("sluice-jms",),
    )
    rows, _ = ask(
        "SELECT destination LIKE '%Orders%' AS shown, properties['region'] AS region, properties['n'] AS n,"
        " numbers['n'] AS number, count(*) AS messages FROM messages GROUP BY ALL",
        access,
    )
    assert {(row["shown"], row["region"], row["n"], row["number"]) for row in rows} == {
        ("true", "••••", None, None), ("false", None, None, None),
    }  # fmt: skip
    assert ask("SELECT DISTINCT reason FROM dead_letters", access)[0] == [{"reason": "••••"}]
    hidden, _ = ask("SELECT count(*) AS n FROM messages WHERE properties['region'] = 'eu' OR numbers['n'] > 0", access)
    assert hidden == [{"n": 0}]


def test_masks_apply_in_their_order_and_spare_what_they_must(spark):
    import pyarrow as pa

    from analytics.transforms.sql.views import _properties

    texts = {"Card": "1234567", "pin": "12", "sluice-property.card": "abcdef", "sluice-jms": "text", "free": "x"}
    properties = pa.array([list(texts.items())], pa.map_(pa.string(), pa.string()))
    table = pa.table({"destination": ["queue://a"], "ps": properties})
    access = DataAccess(
        masks=(PropertyMask("card", "last4", ""), PropertyMask("p[h-j]n", "remove", ""),
               PropertyMask("sluice*", "replace", "#"), PropertyMask("CARD", "remove", "")),
        spared=("sluice-jms",),
    )  # fmt: skip
    frame = spark.createDataFrame(table)
    [row] = frame.select(_properties(access, frame.destination).alias("ps")).collect()
    assert row.ps == {"Card": "••••4567", "sluice-property.card": "••••cdef", "sluice-jms": "text", "free": "x"}


def test_a_result_has_plain_columns_a_chart_and_the_version_of_the_views(ask):
    rows, found = ask(
        "SELECT date_trunc('hour', sent_at) AS hour, destination, count(*) AS messages, map_keys(any_value(properties))"
        " AS keys, CAST(1.5 AS DECIMAL(5, 2)) AS d, INTERVAL 1 DAY AS i, count(*) > 0 AS several FROM messages"
        " GROUP BY ALL ORDER BY hour, destination",
        chart="line", x="hour", y="messages", series="destination",
    )  # fmt: skip
    assert [each.unit for each in found.tables[0].columns] == ["time", "", "count", "", "number", "", ""]
    assert (rows[0]["d"], rows[0]["i"], rows[0]["several"]) == (1.5, "INTERVAL '1' DAY", "true")
    assert "region" in rows[0]["keys"]
    assert found.about["schema"] == SCHEMA_VERSION
    assert found.rows_read == 7
    [(title, figure)] = found.charts
    assert title == "messages by hour, by destination"
    first = figure["data"][0]
    of_first = {row["hour"]: row["messages"] for row in rows if row["destination"] == first["name"]}
    assert [value for value in first["y"] if value is not None] == [of_first[hour] for hour in sorted(of_first)]


def test_rows_and_columns_and_days_are_limited(ask, monkeypatch):
    monkeypatch.setattr(sql_query, "MAX_ROWS", 10)
    rows, found = ask("SELECT message_id FROM messages ORDER BY message_id")
    assert len(rows) == 10
    assert found.notes == ("The result has more than 10 rows. The first 10 are kept.",)
    assert [row["message_id"] for row in rows] == sorted(row["message_id"] for row in rows)
    for statement, window, said in (
        ("SELECT size, size FROM messages", WINDOW, "Several columns are called size"),
        ("SELECT message_id.x FROM messages", WINDOW, "Unknown table 'message_id'"),
        ("SELECT lower(size, 1) FROM messages", WINDOW, "Line 1|lower"),
        ("SELECT size FROM messages GROUP BY destination", WINDOW, "size"),
        ("SELECT 1 AS x", TimeWindow(0, 32 * 86_400_000_000), "longer than 31 days"),
    ):
        with pytest.raises(Exception, match=said) as caught:
            ask(statement, window=window)
        assert "sluice_" not in str(caught.value)


@dataclass(frozen=True)
class Overlooked(CheckedStatement):
    """A statement that the check would have let through by mistake."""

    attack: str = ""

    def text(self, names):
        return self.attack


@pytest.mark.parametrize(("attack", "said"), [
    ("SELECT TRANSFORM(1) USING 'touch {file}' AS (x STRING)", "ScriptTransformation"),
    ("SELECT reflect('java.lang.System', 'getProperty', 'user.name') AS x", "reflect"),
    ("SELECT input_file_name() AS x", "input_file_name"),
    ("SELECT * FROM text.`{file}`", "(?i)not.*(found|supported|enabled)|cannot be found|disabled"),
    ("SELECT 1 AS x) AS result; DROP VIEW x; SELECT * FROM (SELECT 1 AS x", "(?i)syntax"),
    ("INSERT INTO x SELECT 1", "(?i)syntax"),
    ("SET spark.sql.ansi.enabled = false", "(?i)syntax"),
    ("CREATE TEMPORARY VIEW x AS SELECT 1", "(?i)syntax"),
    ("ADD JAR '{file}'", "(?i)syntax"),
    ("SELECT * FROM range(10)", "Range"),
])  # fmt: skip
def test_spark_refuses_what_the_check_of_a_text_would_overlook(attack, said, spark, tmp_path):
    file = tmp_path / "file"
    before = spark.conf.get("spark.sql.runSQLOnFiles")
    spark.conf.set("spark.sql.runSQLOnFiles", "false")
    try:
        with pytest.raises(Exception, match=said):
            sql_query._frame(spark, Overlooked(check("SELECT 1").tree, (), attack.format(file=file)), {})
    finally:
        spark.conf.set("spark.sql.runSQLOnFiles", before)
    assert not file.exists()


def test_a_statement_leaves_no_view_in_the_session(ask, spark):
    ask("SELECT count(*) AS n FROM messages")
    with pytest.raises(AnalysisFailed):
        ask("SELECT size, size FROM deliveries")
    assert [each.name for each in spark.catalog.listTables() if each.name.startswith("sluice_")] == []
    assert spark.conf.get("spark.sql.runSQLOnFiles") == "true"


def test_without_knowing_what_a_user_may_see_nothing_runs(ask):
    with pytest.raises(AnalysisFailed, match="what its user may see"):
        ask("SELECT 1 AS x", access=None)
