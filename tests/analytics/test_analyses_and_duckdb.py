"""Every analysis beside DuckDB on the same recorded traffic: its transforms give the same rows, its job finds what is
in the traffic."""

from functools import partial
from importlib import import_module

import pytest

from analytics.requests.catalogue import ANALYSES
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from benchmarks.analytics import duckdb_queries, traffic

pytestmark = pytest.mark.spark
EVENTS = 30_000
#: Analyses that are tested elsewhere.
OTHERS = ("whatif", "sql")
#: Today without its first and last ten minutes: windows begin and end anywhere.
WINDOW = TimeWindow(traffic.START_US + 10 * traffic.MINUTE_US, traffic.START_US + 170 * traffic.MINUTE_US)
SLOT = 60


@pytest.fixture
def ask(spark, archive, events):
    """Carry out a job: its findings, tables by name."""
    from analytics.spark.event_frames import EventReader

    reader = EventReader(spark, archive)

    def carry_out(job, window=WINDOW, began_us=None, **parameters):
        steps = []

        def collect(title, frame):
            steps.append(title)
            return frame.toArrow()

        def read(*windows):
            return events if windows == (WINDOW,) else reader.events(*windows)

        question = RunQuestion(window, read, parameters, traffic.DEFINITIONS, began_us=began_us, count=reader.counts)
        found = job.run(question, collect)
        assert len(steps) == job.STEPS
        return found, {table.name: table.rows.to_pylist() for table in found.tables}

    return carry_out


def test_a_window_reads_the_events_in_it_and_no_others(events, duck):
    counted = dict(events.groupBy("kind").count().collect())
    assert counted == dict(duck.sql("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
    assert sum(counted.values()) > EVENTS / 3


def test_events_have_the_columns_that_were_recorded(events, duck):
    query = "SELECT msg_id, destination, size, epoch_us(born), ps['region'], pn['n'], broker, weight FROM events"
    expected = duck.sql(f"{query} WHERE kind = 'enqueue' ORDER BY msg_id LIMIT 50").fetchall()
    names = ["msg_id", "destination", "size", "unix_micros(born)", "ps['region']", "pn['n']", "broker", "weight"]
    found = events.where("kind = 'enqueue'").selectExpr(*names).orderBy("msg_id").limit(50)
    assert [tuple(row) for row in found.collect()] == expected


def test_an_archive_without_files_reads_as_nothing(spark, tmp_path):
    from analytics.spark.event_frames import read_events

    assert read_events(spark, tmp_path, WINDOW).count() == 0


def check(frame, schema, query, duck, leave_out=()):
    """The frame has the schema, and the rows that DuckDB finds."""
    assert [(each.name, each.dataType) for each in frame.schema] == [(each.name, each.dataType) for each in schema]
    names = [each.name for each in schema if each.name not in leave_out]
    found = frame.select(*names).toArrow().to_pylist()
    expected = duck.sql(f"SELECT {', '.join(names)} FROM ({query})").to_arrow_table().to_pylist()
    key = partial(_key, names)
    assert sorted(found, key=key) == sorted(expected, key=key)
    assert found


def _key(names, row):
    return [str(row[name]) for name in names]


def count(duck, condition):
    """How many events of the window are so."""
    return duck.sql(f"SELECT count(*) FROM events WHERE {condition}").fetchall()[0][0]


def test_traffic_by_destination_and_time(events, duck):
    from analytics.transforms import schemas
    from analytics.transforms.traffic import traffic as transform

    check(transform(events, 600), schemas.TRAFFIC, duckdb_queries.traffic(600), duck)


def test_ways(events, duck):
    from analytics.transforms import schemas
    from analytics.transforms.route_counts import routes_of
    from analytics.transforms.traffic import message_counts

    check(routes_of(message_counts(events, "original", "destination")), schemas.WAYS, duckdb_queries.ways(), duck)


def test_clients(events, duck):
    from analytics.transforms import schemas
    from analytics.transforms.clients import clients

    check(clients(events, WINDOW), schemas.CLIENTS, duckdb_queries.clients(WINDOW), duck)


def test_causes(events, duck):
    from analytics.transforms import schemas
    from analytics.transforms.failure_causes import causes

    check(causes(events, 600), schemas.CAUSES, duckdb_queries.causes(600), duck)


def test_repeats(events, duck):
    from analytics.transforms import schemas
    from analytics.transforms.redeliveries import repeats

    examples = ("most_redelivered", "most_processed")  # among equals anyone will do
    check(repeats(events), schemas.REPEATS, duckdb_queries.repeats(), duck, examples)


def test_weeks(spark, archive):
    from analytics.spark.event_frames import read_events
    from analytics.transforms import schemas
    from analytics.transforms.week_comparison import weeks, windows_of

    windows = windows_of(WINDOW, 1)
    frame = weeks(read_events(spark, archive, *windows), WINDOW, 600)
    check(frame, schemas.WEEKS, duckdb_queries.weeks(WINDOW, 600), duckdb_queries.connect(archive, *windows))


def test_percentiles_of_latency_are_within_their_error_of_the_exact_ones(events, duck):
    from analytics.rollups.log_histogram import ERROR, PERCENTILES, percentiles
    from analytics.transforms import schemas
    from analytics.transforms.latency import latency, latency_of_destinations

    frame = latency(events, 600)
    assert [(each.name, each.dataType) for each in frame.schema] == [
        (each.name, each.dataType) for each in schemas.LATENCY
    ]
    found = frame.toArrow()
    of_destinations = latency_of_destinations(events)
    assert of_destinations.schema == frame.schema
    by_destination = percentiles(found.filter(found["consumer"].is_null()), ["destination"])
    assert percentiles(of_destinations.toArrow(), ["destination"]) == by_destination
    for none, by, query in (
        ("consumer", ["destination"], duckdb_queries.latency("destination")),
        ("slot", ["destination", "consumer"], duckdb_queries.latency("destination", "consumer")),
        ("consumer", ["destination", "slot"], duckdb_queries.latency_over_time(600)),
    ):
        rows = percentiles(found.filter(found[none].is_null()), by).to_pylist()
        expected = {tuple(row[: len(by)]): row[len(by) :] for row in duck.sql(query).fetchall()}
        assert {tuple(row[name] for name in by) for row in rows} == set(expected)
        for row in rows:
            messages, exact = expected[tuple(row[name] for name in by)]
            assert row["messages"] == messages
            assert [row[name] for name in PERCENTILES] == pytest.approx(exact, rel=ERROR + 1e-9)


def test_what_leaves_a_queue_is_whatever_takes_copies_away(events, duck):
    from analytics.transforms.whatif import flows

    found = {row["destination"]: row["left"] for row in flows(events, 86_400 * 365).collect() if row["left"]}
    expected = duck.sql(
        f"SELECT destination, sum(weight) FROM events WHERE {duckdb_queries.TAKEN} GROUP BY 1"
    ).fetchall()
    assert found == dict(expected)
    assert sum(found.values()) > count(duck, "kind = 'ack'")


# -- what the jobs find


def test_the_depth_is_what_was_noted_and_what_came_and_went_since(ask, archive):
    from analytics.jobs import depth as job

    found, tables = ask(job, limit="20")
    whole = TimeWindow(traffic.START_US, WINDOW.until_us)
    duck = duckdb_queries.connect(archive, whole)
    at_the_end = f"SELECT * FROM ({duckdb_queries.depths(whole, SLOT)}) WHERE epoch_us(until) = {WINDOW.until_us}"
    expected = {name: depth for broker, name, _, depth in duck.sql(at_the_end).fetchall() if broker == traffic.BROKER}
    depths = {row["destination"]: row["depth"] for row in tables["depths"]}
    noted = {name: depths.get(name, 0) for name in expected}
    assert noted == expected
    assert depths[traffic.DEAD_LETTERS] == max(depths.values()) or depths[traffic.FORGOTTEN] == max(depths.values())
    over_time = {trace["name"].partition(" (")[0]: trace["y"] for trace in found.charts[0][1]["data"]}
    depths = duckdb_queries.depths(whole, SLOT)
    query = f"SELECT depth FROM ({depths}) WHERE destination = '{traffic.FORGOTTEN}' ORDER BY until"
    first_minute = (WINDOW.since_us - whole.since_us) // traffic.MINUTE_US
    exact = [depth for (depth,) in duck.sql(query).fetchall()]
    assert over_time["Forgotten"][-len(exact) + first_minute :] == exact[first_minute:]
    full = {row["destination"]: row["full_seconds"] for row in tables["depths"]}
    assert full[traffic.FORGOTTEN] == 0.0  # it holds more than 20 already
    assert "20 messages" in found.sentence


@pytest.mark.long
def test_the_oldest_message_over_time_is_that_of_all_copies_that_wait(ask, archive):
    from analytics.jobs import lag as job

    found, tables = ask(job)
    whole = TimeWindow(traffic.START_US, WINDOW.until_us)
    duck = duckdb_queries.connect(archive, whole)
    rows = duck.sql(duckdb_queries.oldest(whole, SLOT)).fetchall()
    exact: dict[tuple, list[float]] = {}  # of both brokers
    for _, name, until, born in rows:
        exact.setdefault((name, until), []).append((until - born).total_seconds())
    shown = [row for row in tables["lag-by-time"] if row["certainty"] == "exact"]
    assert len(shown) > 0.9 * sum(bool(row["depth"]) for row in tables["lag-by-time"])
    for row in shown:
        ages = exact[row["destination"], row["time"]]
        assert any(row["oldest_seconds"] == pytest.approx(age) for age in ages), (row, ages)
    at_the_end = {row["destination"]: row for row in tables["lag"]}
    forgotten = at_the_end[traffic.FORGOTTEN]
    assert (forgotten["service_rate"], forgotten["behind_seconds"]) == (0.0, None)
    assert forgotten["oldest_max_seconds"] == forgotten["oldest_seconds"]
    assert next(each.value for each in found.headline if each.label == "Of these not served") >= 1


def test_traffic_says_charts_and_lists_what_came(ask, duck):
    from analytics.jobs import traffic as job

    found, tables = ask(job)
    came = duck.sql(
        "SELECT destination, count(*) FILTER (kind = 'enqueue'), count(*) FILTER (kind = 'forward') "
        f"FROM events WHERE {duckdb_queries.HAPPENED} GROUP BY 1"
    ).fetchall()
    assert {(row["destination"], row["sent"], row["stored"]) for row in tables["traffic"]} == set(came)
    assert found.rows_read == count(duck, duckdb_queries.HAPPENED)
    shown = [title for title, _ in found.charts]
    assert shown == ["Sent", "Copies stored", "Acknowledged", "Acknowledgement latency"]
    sent, stored = (sum(row[at] for row in came) for at in (1, 2))
    assert [figure.value for figure in found.headline[:2]] == [sent, stored]
    assert found.sentence.startswith(f"{sent:,} messages were sent to ")
    assert f". {stored:,} copies were stored in " in found.sentence


def test_queues_that_nothing_fans_out_to_have_no_copies_to_speak_of(ask):
    from analytics.jobs import traffic as job

    found, tables = ask(job, destination=traffic.WORK[3])
    [row] = tables["traffic"]
    assert row["sent"] == pytest.approx(row["stored"], abs=1)
    assert "copies" not in found.sentence
    assert "Copies stored" not in [title for title, _ in found.charts]
    found, _ = ask(job, destination="queue://Orders.Eu")
    assert "copies were stored in 1 destination, from messages sent to other destinations" in found.sentence


@pytest.mark.long
def test_a_destination_is_asked_about_by_name_or_pattern(ask):
    from analytics.jobs import traffic as job

    def places(text):
        return {row["destination"] for row in ask(job, destination=text)[1]["traffic"]}

    assert places("Orders.Eu") == {"queue://Orders.Eu"}
    assert places("queue://Orders.*") == {traffic.ORDERS_IN, "queue://Orders.Eu", "queue://Orders.Us"}
    assert places("Consumer.>") == {name for name in traffic.POOLS if "Consumer" in name}
    assert places("/topic/>") == {traffic.TOPIC, traffic.PRICES, traffic.UNHEARD}


def test_latency_names_the_slowest_queue(ask):
    from analytics.jobs import latency as job

    found, tables = ask(job, percentile="p99")
    slowest = tables["latency"][0]
    assert slowest["destination"] == "queue://Consumer.Audit.VirtualTopic.Orders"
    assert "99% of the messages of Consumer.Audit.VirtualTopic.Orders" in found.sentence
    assert slowest["p50_ms"] > 60_000
    minute = TimeWindow(WINDOW.since_us, WINDOW.since_us + traffic.MINUTE_US)
    assert [title for title, _ in ask(job, minute)[0].charts] == ["By destination", "p95 per 5 seconds"]
    found, tables = ask(job, consumer="Work.5-1")
    assert {row["client"] for row in tables["latency-by-consumer"]} == {"Work.5-1"}


def test_fan_out_says_what_a_message_becomes(ask):
    from analytics.jobs import fan_out as job

    found, tables = ask(job)
    factors = {row["original"]: row["factor"] for row in tables["fan-out"]}
    assert set(factors) == {traffic.TOPIC, traffic.ORDERS_IN, traffic.PRICES}
    assert factors[traffic.TOPIC] == pytest.approx(3, rel=0.02)
    assert factors[traffic.ORDERS_IN] == pytest.approx(0.8, rel=0.1)  # eu and us, of three regions
    assert "Highest fan-out: topic://VirtualTopic.Orders" in found.sentence


def test_filters_say_which_legs_never_match(ask):
    from analytics.jobs import filter_hit_rate as job

    found, tables = ask(job)
    legs = {row["destination"]: row for row in tables["filters"]}
    assert (legs["queue://Orders.Moon"]["rate"], legs["queue://Orders.Moon"]["says"]) == (0.0, job.NEVER)
    assert legs["queue://Orders.Eu"]["rate"] == pytest.approx(0.5, abs=0.06)
    assert legs["queue://Never.Reached"]["says"] == job.NOT_SENT
    assert legs["queue://Consumer.Billing.VirtualTopic.Orders"]["rate"] == pytest.approx(1, abs=0.02)
    assert "1 target never matched: Orders.Moon of Orders.In" in found.sentence


def test_skew_names_who_takes_more_than_an_even_share(ask):
    from analytics.jobs import consumer_balance as job

    _, tables = ask(job)
    rows = {row["destination"]: row for row in tables["skew"]}
    assert all(row["consumers"] > 1 for row in rows.values())
    shipping = rows["queue://Consumer.Shipping.VirtualTopic.Orders"]
    assert shipping["client"] == "Consumer.Shipping.VirtualTopic.Orders-0"
    assert shipping["share"] == pytest.approx(0.5, abs=0.05)
    assert shipping["factor"] == pytest.approx(3 * shipping["share"], abs=0.001)
    shares = [row["share"] for row in tables["shares"] if row["destination"] == shipping["destination"]]
    assert sum(shares) == pytest.approx(1)


def test_consumers_that_are_stuck_idle_or_slow_are_found(ask):
    from analytics.jobs import consumer_health as job

    found, tables = ask(job, minutes="30")
    states = {row["client"]: row["state"] for row in tables["consumers"]}
    assert states["Work.10-0"] == "stuck"
    assert states["Work.11-0"] == "idle"
    assert states["Work.10-1"] != "stuck"
    assert "Work.10-0 is stuck" in found.sentence
    held = {row["client"]: row["held_ms"] for row in tables["consumers"]}
    assert 100_000 < held["Consumer.Audit.VirtualTopic.Orders-0"] < 160_000  # two minutes at the median
    assert held["Work.3-0"] < 100


def test_dead_letters_that_are_alike_are_one_cause(ask, duck):
    from analytics.jobs import dead_letters as job

    found, tables = ask(job)
    dead = [row for row in tables["causes"] if row["outcome"] == "dead letter"]
    assert {row["cause"] for row in dead} == {
        "java.lang.IllegalStateException: card … of customer … expired",
        "ConstraintViolation: order … exists already (key …",
        "timeout after … ms calling …",
    }
    failed = count(duck, "kind = 'dead_letter'")
    assert sum(row["messages"] for row in dead) == failed
    assert f"{failed:,} dead letters with 3 causes" in found.sentence
    assert next((each.value, each.unit) for each in found.headline) == (failed, "count"), "of times, not of messages"
    assert any("fails again counts again" in note for note in found.notes)
    given_up = duck.sql("SELECT msg_id FROM events WHERE kind IN ('dead_letter', 'expire', 'drop')").fetchall()
    assert {row["message"] for row in tables["examples"]} <= {id for (id,) in given_up}


def test_repeats_name_what_was_processed_twice_and_by_two_brokers(ask):
    from analytics.jobs import redeliveries as job

    found, tables = ask(job)
    rows = {row["destination"]: row for row in tables["repeats"]}
    assert sum(row["duplicated"] for row in rows.values()) > 0
    assert rows[traffic.WORK[0]]["across"] > 0
    assert sum(row["across"] for row in rows.values()) == rows[traffic.WORK[0]]["across"]
    assert max(row["most"] for row in rows.values()) == traffic.MOST_REDELIVERIES
    assert "by two brokers" in found.sentence


def test_the_league_ranks_who_sends_and_who_takes(ask):
    from analytics.jobs import client_ranking as job

    found, tables = ask(job)
    sends = tables["producers"][0]
    assert (sends["client"], sends["destination"]) == ("VirtualTopic.Orders-sender-0", traffic.TOPIC)
    assert sum(row["share"] for row in tables["producers"]) == pytest.approx(1)
    assert sends["rate"] == pytest.approx(sends["messages"] / WINDOW.seconds)
    assert found.sentence.startswith("Largest producer: VirtualTopic.Orders-sender-0 ")


def test_weeks_are_compared_with_the_same_hours(ask):
    from analytics.jobs import week_comparison as job

    found, tables = ask(job, weeks="2")
    rows = {row["destination"]: row for row in tables["weeks"]}
    assert rows[traffic.TOPIC]["change"] == pytest.approx(1 / traffic.WEEK_EARLIER - 1, abs=0.15)
    assert "more than the previous week" in found.sentence
    units = {each.unit for each in found.headline if "Dead-lettered" in each.label}
    assert units == {"count"}, "of failures, not messages"
    assert any("fails again counts again" in note for note in found.notes)
    assert [trace["name"] for trace in found.charts[0][1]["data"]] == ["current", "previous week"]


def test_a_week_of_which_a_part_was_recorded_is_drawn_from_there_on(ask):
    from analytics.jobs import week_comparison as job

    found, _ = ask(job, began_us=WINDOW.since_us - traffic.WEEK_US + traffic.HOUR_US)
    now, before = (trace["y"] for trace in found.charts[0][1]["data"])
    assert None not in now
    assert (before[:60], None in before[60:]) == ([None] * 60, False)


def test_orphans_are_what_nobody_reads_and_what_never_matched(ask):
    from analytics.jobs import unused_routing as job

    found, tables = ask(job)
    assert {row["destination"] for row in tables["orphans"]} == {traffic.FORGOTTEN, traffic.UNHEARD}
    assert {row["definition"] for row in tables["unused"]} == {
        "virtualTopic:Unused.>|Consumer.*.|", "compositeQueue:Never.Sent",
    }  # fmt: skip
    assert "No consumers on Forgotten and topic://Unheard" in found.sentence


@pytest.mark.parametrize("kind", [kind for kind in ANALYSES if kind not in OTHERS])
def test_of_nothing_every_job_says_so_without_an_empty_frame(kind, events):
    job = import_module(ANALYSES[kind].module)
    nothing = RunQuestion(TimeWindow(0, 60_000_000), lambda *_: events.where("false"))
    found = job.run(nothing, lambda _, frame: frame.toArrow())
    assert found.sentence.endswith(".")
    assert (found.charts, found.tables) == ((), ())
