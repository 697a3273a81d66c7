"""Test the snapshot of the broker: rates, totals, and the lists and health derived from it. No I/O."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats, NodeStatus
from brokerapp.store.server.disk_space import MIB, DiskLevel, DiskSpace
from console.access.roles import Sees, everything
from console.broker import snapshot as pictures
from console.broker.snapshot import BrokerSnapshot, Rates, apply_changes, apply_tick, initial_snapshot, mark_stale
from console.destinations.lists import DESTINATION_TABLES, DestinationRow, visible_rows
from console.metrics import health
from console.ui.formatting import number_format
from console.ui.formatting.tables import TablePage

A, B = Destination.queue("a"), Destination.queue("b")
NODE = NodeStatus("node", "sluice", 0, 0)
AWAY = MemberStatus("b", "stomp://b", MemberState.DOWN, False)
CLUSTER = ClusterStatus("sluice", "sluice", False, True, "", "r", 1, 0, (AWAY,))


def stats(destination=A, enqueued=0, dequeued=0, **more) -> DestinationStats:
    return DestinationStats(destination, EnqueueCount=enqueued, DequeueCount=dequeued, **more)


def flowing(seconds: int, each_second: int, start: float = 100.0) -> BrokerSnapshot:
    """A picture after messages came evenly."""
    picture = initial_snapshot(start, 1, [stats()], BrokerSnapshot())
    for second in range(1, seconds + 1):
        picture = apply_changes(picture, start + second, second + 1, [stats(enqueued=second * each_second)], [])
        picture = apply_tick(picture, start + second, [NODE])
    return picture


@pytest.mark.parametrize("kind", [DestinationKind.SUBSCRIPTION, DestinationKind.TEMP_QUEUE, DestinationKind.TEMP_TOPIC])
def test_what_has_no_page_is_not_in_the_picture(kind):
    other = stats(Destination(kind, "c:sub"))
    picture = initial_snapshot(1.0, 1, [stats(), other], BrokerSnapshot())
    assert list(picture.stats) == [A]
    picture = apply_changes(picture, 2.0, 2, [stats(B), other], [other.destination])
    assert set(picture.stats) == {A, B}


@pytest.mark.parametrize("seconds", [1, 3, 5, 20])
def test_an_even_flow_has_its_rate_from_the_first_second_on(seconds):
    assert flowing(seconds, 50).rates(A).enqueue == pytest.approx(50)


def test_a_flow_that_stops_fades_to_zero_within_the_window():
    picture = flowing(10, 50)
    rates = []
    for second in range(1, 8):
        picture = apply_tick(picture, 110 + second, [NODE])
        rates.append(picture.rates(A).enqueue)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0
    assert A not in picture.tracks


def test_a_new_destination_counts_from_nothing():
    picture = apply_changes(BrokerSnapshot(at=99), 100, 1, [stats(enqueued=7)], [])
    assert picture.rates(A).enqueue == pytest.approx(7)


def test_what_came_before_the_first_look_makes_no_rate():
    assert initial_snapshot(100, 1, [stats(enqueued=1_000_000)], BrokerSnapshot()).rates(A).enqueue == 0


def test_counters_that_start_anew_make_no_negative_rate():
    picture = apply_changes(flowing(5, 50), 106, 9, [stats(enqueued=3)], [])
    assert picture.rates(A).enqueue == 0
    picture = apply_changes(picture, 107, 10, [stats(enqueued=13)], [])
    assert picture.rates(A).enqueue == pytest.approx(10)


def test_totals_tell_dead_letters_from_pending_and_queues_from_topics():
    rows = [stats(A, QueueSize=5), stats(B, QueueSize=2, DLQ=True), stats(Destination.topic("t"), enqueued=9)]
    totals = apply_tick(initial_snapshot(100, 1, rows, BrokerSnapshot()), 101, [NODE]).totals
    assert (totals.pending, totals.dead, totals.queues, totals.topics) == (5, 2, 2, 1)


def test_a_deleted_destination_leaves_no_trace():
    picture = flowing(6, 10)
    picture = apply_tick(apply_changes(picture, 107, 9, [], [A]), 107, [NODE])
    assert not picture.stats
    assert not picture.tracks


def test_the_past_is_bounded():
    assert len(flowing(400, 1).past) <= pictures.PAST + 1


def test_logs_of_subscriptions_are_kept_apart_and_go_with_them():
    log = stats(Destination(DestinationKind.SUBSCRIPTION, "c:sub"), QueueSize=3)
    picture = initial_snapshot(1.0, 1, [stats(), log], BrokerSnapshot())
    assert picture.subscriptions == {log.destination: log}
    assert apply_changes(picture, 2.0, 2, [], [log.destination]).subscriptions == {}


def test_trouble_keeps_the_numbers_and_says_why():
    picture = mark_stale(flowing(3, 10), "no answer")
    assert picture.stats[A].EnqueueCount == 30
    assert picture.trouble == "no answer"
    assert apply_tick(picture, 200, [NODE]).trouble == ""


# -- lists


def list_page(
    rows: Iterable[DestinationStats],
    query: dict[str, str],
    sees: Sees = everything,
    starred: frozenset[str] = frozenset(),
) -> TablePage[DestinationRow]:
    picture = initial_snapshot(100, 1, rows, BrokerSnapshot())
    found = visible_rows(picture, DestinationKind.QUEUE, sees)
    return DESTINATION_TABLES[DestinationKind.QUEUE].page(found, query, starred)


def names_on_page(query: dict, *rows: DestinationStats) -> list[str]:
    return [row.destination.name for row in list_page(rows, query).rows]


MANY = [stats(Destination.queue(f"q{number:03}"), QueueSize=number % 7) for number in range(120)]


def test_pages_divide_the_list_without_gap_or_overlap():
    pages = [names_on_page({"page": str(number), "size": "50"}, *MANY) for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [50, 50, 20]
    assert [name for page in pages for name in page] == [each.destination.name for each in MANY]


def test_a_page_beyond_the_end_is_the_last_one():
    assert names_on_page({"page": "99"}, *MANY) == names_on_page({"page": "3"}, *MANY)


def test_equal_numbers_are_in_the_order_of_names_also_when_the_largest_come_first():
    top = names_on_page({"sort": "-QueueSize", "size": "25"}, *MANY)
    assert top[:3] == ["q006", "q013", "q020"]


def test_chips_count_what_the_text_leaves():
    page = list_page(MANY, {"q": "q00"})
    assert {name: count for name, _, count in page.counts} == {
        "": 10,
        "starred": 0,
        "non-empty": 8,
        "no-consumer": 10,
        "paused": 0,
        "dlq": 0,
    }


def test_users_who_see_less_are_shown_less_and_count_less():
    page = list_page(MANY, {}, lambda each: each.name < "q010")
    assert (page.total, page.existing, len(page.rows)) == (10, 10, 10)


def test_the_favorites_chip_shows_the_favorites_of_a_user():
    page = list_page(MANY, {"show": "starred"}, starred=frozenset({"queue://q007", "queue://gone"}))
    assert [row.destination.name for row in page.rows] == ["q007"]


def test_the_url_holds_the_query_and_a_change_goes_back_to_page_one():
    page = list_page(MANY, {"q": "a b", "show": "dlq", "sort": "-QueueSize", "page": "3", "size": "25"})
    assert page.url(page=3) == "?q=a+b&show=dlq&sort=-QueueSize&page=3&size=25"
    assert page.url(show="") == "?q=a+b&sort=-QueueSize&size=25"


def test_ten_thousand_queues_make_a_page_quickly():
    import time

    rows = [stats(Destination.queue(f"load.{number}"), QueueSize=number, enqueued=number) for number in range(10_000)]
    picture = apply_changes(initial_snapshot(100, 1, rows, BrokerSnapshot()), 101, 2, rows, [])
    started = time.process_time()  # others may be at work on this machine too
    DESTINATION_TABLES[DestinationKind.QUEUE].page(
        visible_rows(picture, DestinationKind.QUEUE), {"sort": "-EnqueueRate"}
    )
    assert time.process_time() - started < 0.3


def test_rates_are_computed_for_the_rows_shown_and_no_others(monkeypatch):
    asked = []
    monkeypatch.setattr(BrokerSnapshot, "rates", lambda self, destination: asked.append(destination) or Rates())
    rows = [stats(Destination.queue(f"q{n:03}")) for n in range(300)]
    shown = list_page(rows, {"sort": "-QueueSize", "size": "25", "page": "3"}).rows
    assert [row.cells for row in shown]
    assert asked == [row.destination for row in shown]
    assert len(shown) == 25


# -- health

FINDINGS = [
    ("dead letters", stats(QueueSize=3, DLQ=True), "Dead letters", "act"),
    ("paused", stats(QueueSize=3, Paused=True, ConsumerCount=1), "Paused", "look"),
    ("nobody consumes", stats(QueueSize=3), "No consumers", "look"),
]


@pytest.mark.parametrize(("row", "label", "state"), [each[1:] for each in FINDINGS], ids=[each[0] for each in FINDINGS])
def test_what_deserves_a_look(row, label, state):
    picture = apply_tick(initial_snapshot(100, 1, [row], BrokerSnapshot()), 101, [NODE])
    [finding] = health.findings(picture)
    assert finding.label == label
    assert health.summarize(picture, [finding]).state == state


def test_a_queue_that_grows_is_noted_and_one_that_drains_is_not():
    busy = {"QueueSize": 500, "ConsumerCount": 1}
    start = initial_snapshot(100, 1, [stats(A, **busy), stats(B, **busy)], BrokerSnapshot())
    later = apply_changes(start, 101, 2, [stats(A, 90, 10, **busy), stats(B, 10, 90, **busy)], [])
    assert [(each.destination, each.label) for each in health.findings(later)] == [(A, "Growing")]


def climbing(each_second: int, start: int) -> BrokerSnapshot:
    """A queue of so many messages that grows evenly for two minutes, but was read in a batch just now."""
    picture = initial_snapshot(100, 1, [stats(QueueSize=start, ConsumerCount=1)], BrokerSnapshot())
    for second in range(121):
        row = stats(A, 10 * second, 0, QueueSize=start + each_second * second, ConsumerCount=1)
        picture = apply_tick(apply_changes(picture, 100 + second, 2 + second, [row], []), 100 + second, [NODE])
    batch = stats(A, 1200, 900, QueueSize=start + each_second * 120, ConsumerCount=1)
    return apply_changes(picture, 221, 200, [batch], [])


@pytest.mark.parametrize(("each_second", "start", "grows"), [(2, 500, True), (0, 500, False), (1, 50_000, False)])
def test_a_queue_grows_when_it_is_deeper_than_minutes_ago_whatever_the_last_seconds_say(each_second, start, grows):
    picture = climbing(each_second, start)
    assert picture.rates(A).dequeue > picture.rates(A).enqueue
    assert [each.sentence for each in health.findings(picture)] == ["740 messages, 240 more than 2 min ago"] * grows


def test_a_queue_that_was_not_known_minutes_ago_is_not_one_that_grew_from_nothing():
    picture = apply_tick(BrokerSnapshot(), 90, [])  # a console that started before its node
    for second in range(0, 121, 20):
        row = stats(A, QueueSize=27_000, ConsumerCount=1)
        picture = apply_tick(apply_changes(picture, 100 + second, 1 + second, [row], []), 100 + second, [NODE])
    assert A not in picture.depths[0].of
    assert health.findings(picture) == []


@pytest.mark.parametrize("row", [stats(QueueSize=0), stats(QueueSize=9, ConsumerCount=1), stats(QueueSize=0, DLQ=True)])
def test_what_is_well_is_left_alone(row):
    picture = apply_tick(initial_snapshot(100, 1, [row], BrokerSnapshot()), 101, [NODE])
    assert health.findings(picture) == []
    assert health.summarize(picture, []).state == "good"


def test_a_store_whose_disk_is_full_is_named_with_what_to_do():
    disk = DiskSpace(500_000 * MIB, 3 * MIB, 128 * MIB).assess(DiskLevel.ENOUGH)
    node = replace(NODE, store={"disk": disk.to_json()})
    said = health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [node]), [])
    assert said.state == "act"
    assert said.sentence == (
        "Sends are blocked: the disk of the store is almost full: 3.0 MiB free, messages are accepted again at "
        "320.0 MiB."
    )


def test_a_store_that_too_few_replicas_follow_is_named():
    node = replace(NODE, store={"replicas": 1, "replicas_wanted": 2})
    said = health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [node]), [])
    assert (said.state, said.sentence) == ("act", "1 of 2 replicas follow the store: receipts wait for the others.")


def test_a_store_that_may_lose_what_was_confirmed_is_named():
    node = replace(NODE, store={"fsync": "off"})
    assert (
        "memory only"
        in health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [node]), []).sentence
    )
    meant = replace(NODE, store={"fsync": "off", "kept": False})
    assert (
        health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [meant]), []).state
        == "good"
    )


def test_a_store_that_was_rolled_back_is_reported_for_a_day():
    day = 24 * 3600 * 1000
    node = replace(NODE, seen_ms=10 * day, store={"rollbacks": 1, "rollback_ms": 10 * day - 1, "rollback_changes": 12})
    verdict = health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [node]), [])
    assert verdict.state == "act"
    assert verdict.sentence.startswith("The store was rolled back at 23:59:59 UTC: at least 12 confirmed changes")
    later = replace(node, seen_ms=11 * day)
    assert (
        health.summarize(apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [later]), []).state
        == "good"
    )


def test_a_restore_is_no_problem_and_is_told_for_a_day():
    day = 24 * 3600 * 1000
    node = replace(NODE, seen_ms=10 * day, store={"restored_ms": 10 * day - 1, "backup_ms": 9 * day})
    picture = apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [node])
    assert health.summarize(picture, []) == health.HealthSummary(
        "good",
        "Healthy. All queues are empty. Restored at 23:59:59 UTC from the backup of 1970-01-10 00:00:00 UTC.",
    )
    later = apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [replace(node, seen_ms=11 * day)])
    assert "Restored" not in health.summarize(later, []).sentence


def test_dead_letters_and_a_broker_that_is_away_are_not_hidden_by_a_store_that_is_always_so():
    node = replace(NODE, store={"fsync": "off"})
    picture = apply_tick(initial_snapshot(100, 1, [stats(QueueSize=3, DLQ=True)], BrokerSnapshot()), 101, [node])
    assert "dead-lettered" in health.summarize(picture, health.findings(picture)).sentence
    picture = apply_tick(
        initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [replace(node, cluster=CLUSTER.to_json())]
    )
    assert health.summarize(picture, []).sentence == "Cluster broker b unreachable."


def test_no_node_and_no_answer_are_told_apart():
    picture = apply_tick(initial_snapshot(100, 1, [stats()], BrokerSnapshot()), 101, [])
    assert health.summarize(picture, []).sentence.startswith("No broker node is running")
    assert health.summarize(mark_stale(picture, "gone"), []).state == "lost"


def test_the_most_urgent_comes_first_and_the_fuller_before_the_emptier():
    rows = [
        stats(Destination.queue("few"), QueueSize=1),
        stats(Destination.queue("many"), QueueSize=9),
        stats(Destination.queue("dead"), QueueSize=1, DLQ=True),
    ]
    found = health.findings(initial_snapshot(100, 1, rows, BrokerSnapshot()))
    assert [each.destination.name for each in found] == ["dead", "many", "few"]


def test_a_queue_that_grew_by_thousands_comes_before_queues_with_a_few_messages():
    dead = stats(Destination.queue("dead"), QueueSize=2, DLQ=True)
    idle = stats(Destination.queue("idle"), QueueSize=1)
    grown = Destination.queue("grown")
    before = initial_snapshot(100, 1, [dead, idle, stats(grown, QueueSize=14_000, ConsumerCount=1)], BrokerSnapshot())
    picture = apply_changes(before, 101, 2, [stats(grown, 400, 8, QueueSize=14_392, ConsumerCount=1)], [])
    found = health.findings(picture)
    assert [(each.destination.name, each.label) for each in found] == [
        ("grown", "Growing"),
        ("dead", "Dead letters"),
        ("idle", "No consumers"),
    ]


# -- figures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number_format.format_integer(1234567), "1,234,567"),
        (number_format.format_rate(0.04), "0.0"),
        (number_format.format_rate(999.94), "999.9"),
        (number_format.format_rate(1234.5), "1,234"),
        (number_format.format_bytes(0), "0 B"),
        (number_format.format_bytes(1536), "1.5 KiB"),
        (number_format.format_bytes(5 * 1024**4), "5.0 TiB"),
        (number_format.format_duration(0.4), "0.4 s"),
        (number_format.format_duration(59), "59 s"),
        (number_format.format_duration(3600), "1 h"),
        (number_format.pluralize_count(1, "queue"), "1 queue"),
        (number_format.pluralize_count(2000, "queue"), "2,000 queues"),
        (number_format.format_value(None, "ms"), "–"),
        (number_format.format_value(2048, "bytes"), "2.0 KiB"),
        (number_format.format_value("a", ""), "a"),
    ],
)
def test_figures_read_well(text, expected):
    assert text == expected
