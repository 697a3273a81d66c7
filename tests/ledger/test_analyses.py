"""Test that every figure of every analysis is what clients saw."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analytics.archive.broker_archive import BrokerArchive
from analytics.model.measures import WITHOUT_MESSAGE
from analytics.requests.catalogue import ANALYSES
from analytics.requests.whatif_request import WhatIfRequest
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from tests.ledger import expected
from tests.ledger.comparing import check
from tests.ledger.expected import Account, Expected
from tests.ledger.expected_consumers import health, skew
from tests.ledger.expected_failures import dead_letters, repeats
from tests.ledger.expected_lag import lag
from tests.ledger.expected_whatif import targets_of, whatif
from tests.ledger.numbers import ROLLED_BACK, count
from tests.ledger.rules import ARCHIVE, ARCHIVED, BROKER, COMPOSITE, DRAFT

pytestmark = pytest.mark.spark
#: By the kind of the analysis; weeks and what-if need more than an account.
EXPECTED: dict[str, Callable[..., Expected]] = {
    "traffic": expected.traffic, "weeks": expected.weeks, "league": expected.league, "fan-out": expected.fan_out,
    "latency": expected.latency, "depth": expected.depth, "lag": lag, "skew": skew, "health": health,
    "dead-letters": dead_letters, "repeats": repeats, "filters": expected.filters, "orphans": expected.orphans,
}  # fmt: skip
#: The way up to which the load happened a week before, too.
HALF = "again"


@pytest.fixture(scope="module")
def account(done):
    return Account(done.ledger, done.window)


@pytest.fixture(scope="module")
def compare(ask, account):
    """A function that checks all that an analysis says."""

    def check_all(kind: str, **parameters) -> None:
        answer = ask(kind, **parameters)
        check(kind, EXPECTED[kind](account), answer.headline, answer.tables)

    return check_all


def test_traffic_counts_what_was_committed_stored_given_and_acknowledged(compare):
    compare("traffic")


def test_the_league_ranks_clients_by_what_they_sent_and_acknowledged(compare):
    compare("league")


@pytest.mark.parametrize("kind", ["traffic", "league"])
def test_a_note_tells_how_many_messages_were_rolled_back(ask, account, kind):
    [note] = [each for each in ask(kind).findings.notes if "rolled-back" in each]
    assert note.startswith(f"{count(account.found, ROLLED_BACK).total():,} messages in rolled-back transactions")


def test_every_event_of_the_time_range_is_read_once(ask, done):
    files = BrokerArchive(done.archive, BROKER).folder.rglob("part-*.parquet")
    kinds = pa.concat_tables(pq.read_table(path, columns=["kind"], partitioning=None) for path in files)["kind"]
    happened = pc.invert(pc.is_in(kinds.cast(pa.string()), pa.array(WITHOUT_MESSAGE)))
    for kind in ("traffic", "fan-out", "orphans"):
        assert ask(kind).findings.rows_read == pc.sum(happened).as_py(), kind


def test_fan_out_counts_the_copies_of_each_message_that_was_sent(compare):
    compare("fan-out")


def test_latencies_are_between_what_clients_measured_at_least_and_at_most(compare):
    compare("latency")


def test_depths_are_what_nobody_took_away(compare):
    compare("depth")


def test_skew_says_who_took_how_much(compare):
    compare("skew")


def test_health_says_who_holds_messages_and_for_how_long(compare):
    compare("health")


def test_each_message_that_failed_is_told_once_with_its_cause(ask, account):
    answer, expected_answer = ask("dead-letters"), dead_letters(account)
    # One message of each time slot: the expectation names the newest of all slots, the others are checked by their ids.
    newest = {}
    known = {(row["destination"], row["reason"]): row["message"] for row in expected_answer.tables["examples"][1]}
    for row in sorted(answer.tables["examples"], key=lambda each: each["at"]):
        key = row["destination"], row["reason"]
        assert key in known
        assert known[key](row["message"])
        newest[key] = row
    tables = {**answer.tables, "examples": list(newest.values())}
    check("dead-letters", expected_answer, answer.headline, tables)


def test_lag_is_the_age_of_the_oldest_copy_that_waits_and_the_rates_of_what_comes_and_is_served(compare):
    compare("lag")


def test_repeats_are_messages_that_were_given_or_processed_again(compare):
    compare("repeats")


def test_filters_count_what_each_leg_took(compare):
    compare("filters")


def test_a_what_if_counts_where_messages_went_and_would_have_gone(ask, account, done):
    answer = ask("whatif", trial=draft(done.node))
    tables = {name: rows for name, rows in answer.tables.items() if name != "samples"}
    check("whatif", whatif(account), answer.headline, tables)
    by_id = {each.id: each for each in account.ledger.messages if each.id}
    legs = {f"leg {row['leg']}": row for row in answer.tables["legs"]}
    for sample in answer.tables["samples"]:
        message = by_id.get(sample["message"])
        if message is not None:
            born = [expected.moment(each) for each in (message.born.after, message.born.before)]
            assert (sample["destination"], born[0] <= sample["time"] <= born[1]) == (message.to, True)
            assert legs[sample["what"]]["target"] in [*targets_of(message, DRAFT, is_draft=True), message.to]


def draft(node):
    """The rules of DRAFT as definitions, beside those in force."""
    current = node.ask(lambda admin: admin.definitions())
    at = Destination.parse(COMPOSITE)
    legs = tuple(ForwardTarget(Destination.parse(to), selector) for to, (selector, _) in DRAFT.items())
    kept = (each for each in current.virtual_destinations if getattr(each, "destination", None) != at)
    archive = CompositeDestination(
        Destination.parse(ARCHIVED), (ForwardTarget(Destination.parse(ARCHIVE), None),), forward_only=False
    )
    proposed = replace(current, virtual_destinations=(*kept, CompositeDestination(at, legs), archive))
    return WhatIfRequest(current, proposed, node.ask(lambda admin: admin.routing_context(proposed)))


def test_the_same_hours_of_a_week_before_are_counted_as_this_week(ask, account, done, week_before):
    answer = ask("weeks", archive=week_before, weeks="1")
    wanted = EXPECTED["weeks"](account, done.ledger, done.load.ended[HALF])
    check("weeks", wanted, answer.headline, answer.tables)


@pytest.fixture(scope="module")
def week_before(done, tmp_path_factory):
    """An archive in which a part of the load happened a week before, too."""
    folder, source = tmp_path_factory.mktemp("weeks"), BrokerArchive(done.archive, BROKER)
    events = pa.concat_tables(pq.read_table(path, partitioning=None) for path in source.folder.rglob("part-*.parquet"))
    events = events.drop_columns("entry")
    until = pa.scalar(done.load.ended[HALF], pa.timestamp("us", "UTC"))
    earlier, week = events.filter(pc.less(events["ts"], until)), pa.scalar(timedelta(days=7))
    for name in ("ts", "born"):
        earlier = earlier.set_column(
            earlier.schema.get_field_index(name), events.schema.field(name), pc.subtract(earlier[name], week)
        )
    BrokerArchive(folder, BROKER).append(pa.concat_tables([earlier.cast(events.schema), events]), source.commit)
    return folder


def test_a_forecast_of_a_few_minutes_is_refused(ask):
    answer = ask("forecast")
    assert answer.findings.sentence.startswith("A forecast needs at least 3 days of recorded traffic")
    assert answer.tables == {}


def test_every_analysis_of_the_catalogue_is_compared():
    assert {*EXPECTED, "whatif", "forecast", "sql"} == set(ANALYSES)


def test_orphans_are_what_nobody_read_and_what_nothing_was_sent_to(compare):
    compare("orphans")
