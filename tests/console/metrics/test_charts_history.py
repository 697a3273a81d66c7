"""Test the history on pages: time ranges, charts, sparklines; and the sampler, which one process runs."""

import time

import pytest
from django.urls import reverse

from analytics.rollups.counters import DepthNote, EventCounts
from analytics.rollups.store import RollupStore
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.time_series import COARSE, FINE, BrokerPoint, DestinationPoint, pack_point
from brokerapp.store.history_rings import BROKER_RING
from console.audit.models import AuditEntry
from console.broker.gateway import Gateway, gateway
from console.broker.mirror import BrokerMirror, mirror
from console.broker.snapshot import BrokerSnapshot
from console.metrics import charts_history, rollup_history
from console.metrics.charts import chart_data
from console.metrics.charts.chart_events import starts_of_nodes
from console.metrics.charts_history import ChartWindow, broker_marks, destination_marks, spark
from console.metrics.sampling.sampler import LEASE, MetricsSampler
from tests.waiting import wait_until

NOW = 1_700_000_000


def whole(at: int, **more) -> BrokerPoint:
    return BrokerPoint(at, **{**dict.fromkeys(BrokerPoint._fields[1:], 0), **more})


# -- windows


@pytest.mark.parametrize(
    ("query", "name", "seconds", "resolution"),
    [
        ({}, "15m", 900, FINE),
        ({"window": "1h"}, "1h", 3600, FINE),
        ({"window": "24h"}, "24h", 86400, COARSE),
        ({"window": "a year"}, "15m", 900, FINE),
        ({"from": str(NOW - 600), "to": str(NOW - 300)}, "", 300, FINE),
        ({"from": str(NOW - 20_000), "to": str(NOW - 300)}, "", 19_700, COARSE),
        ({"from": str(NOW - 30), "to": str(NOW)}, "15m", 900, FINE),  # too short
        ({"from": str(NOW - 99_999_999), "to": str(NOW)}, "15m", 900, FINE),  # longer ago than is kept
        ({"from": "x", "to": "-1"}, "15m", 900, FINE),
    ],
)
def test_a_window_is_read_from_the_url_or_is_the_default(query, name, seconds, resolution):
    window = ChartWindow.read(query, NOW)
    assert (window.name, window.seconds, window.resolution) == (name, seconds, resolution)


@pytest.mark.parametrize(("name", "kept"), [("15m", FINE), ("1h", FINE), ("24h", COARSE)])
def test_a_window_has_the_same_source_at_any_fraction_of_a_second(name, kept):
    assert ChartWindow.read({"window": name}, NOW + 0.9).resolution == kept


def test_a_chosen_window_is_the_same_link_tomorrow():
    window = ChartWindow.read({"from": str(NOW - 600), "to": str(NOW)}, NOW)
    assert window.query == f"?from={NOW - 600}&to={NOW}"
    assert not window.is_live


# -- charts


def test_a_step_in_which_nobody_looked_is_a_gap_and_not_zero():
    window = ChartWindow.read({}, NOW)
    looked = [whole(NOW - 30, pending=5), whole(NOW - 20, pending=5), whole(NOW, pending=7, arrived=20)]
    assert broker_marks(looked, window) == [
        [(NOW - 30) * 1000, 5, 0, 0],
        [(NOW - 20) * 1000, 5, 0, 0],
        [NOW * 1000, 7, 2.0, 0],
    ]


def test_a_queue_that_stood_still_is_shown_where_it_stood():
    window = ChartWindow.read({}, NOW)
    looked = [whole(NOW - 30), whole(NOW - 20), whole(NOW - 10), whole(NOW)]
    kept = [DestinationPoint(NOW - 20, 8, 5, 1, 0)]
    levels = [mark[1] for mark in destination_marks(kept, looked, window, pending=8)]
    assert levels == [4, 8, 8, 8]  # before its first point: what it must have held
    assert [mark[2] for mark in destination_marks(kept, looked, window, pending=8)] == [0, 0.5, 0, 0]
    assert [mark[1] for mark in destination_marks([], looked, window, pending=3)] == [3, 3, 3, 3]


def test_the_chart_of_who_sees_some_queues_leaves_dead_letters_out_as_that_of_the_broker_does(monkeypatch):
    stats = [
        DestinationStats(Destination.queue("moves"), QueueSize=3),
        DestinationStats(Destination.queue("dead"), QueueSize=40, DLQ=True),
        DestinationStats(Destination.queue("stands"), QueueSize=5),
    ]
    kept = {"moves": [DestinationPoint(NOW, 3, 3, 0, 0)], "dead": [DestinationPoint(NOW, 40, 1, 0, 0)]}
    monkeypatch.setattr(chart_data, "gateway", lambda: None)
    monkeypatch.setattr(
        charts_history, "read_points", lambda _door, _step, queues: [kept.get(each.name, []) for each in queues]
    )
    picture, looked = BrokerSnapshot(stats={each.destination: each for each in stats}), [whole(NOW - 10), whole(NOW)]
    marks = chart_data._marks_of_seen(picture, ChartWindow.read({}, NOW), looked)
    assert [mark[1:] for mark in marks] == [[5, 0, 0], [8, 0.4, 0]]
    kept.clear()
    assert [mark[1] for mark in chart_data._marks_of_seen(picture, ChartWindow.read({}, NOW), looked)] == [8, 8]


AN_HOUR = [whole(NOW - 3600 + 10 * step) for step in range(361)]


def stretches(line: str) -> list[list[tuple[float, float]]]:
    """The corners of each stretch of a sparkline."""
    return [[tuple(map(float, each.split(","))) for each in run.split()] for run in line.split("M")[1:]]


def test_a_sparkline_ends_at_the_present_and_stays_in_its_box():
    kept = [DestinationPoint(NOW - 3000, 100, 100, 0, 0), DestinationPoint(NOW - 60, 40, 0, 60, 0)]
    for kind in (DestinationKind.QUEUE, DestinationKind.TOPIC):
        [corners] = stretches(spark(kept, AN_HOUR, NOW, kind, 40))
        assert (corners[0][0], corners[-1][0]) == (0, 100)
        assert all(0 <= x <= 100 and 0 <= y <= 24 for x, y in corners)


def test_a_sparkline_of_what_never_moved_is_a_few_characters():
    assert len(spark([], AN_HOUR, NOW, DestinationKind.QUEUE, 7)) < 20


@pytest.mark.parametrize("kind", [DestinationKind.QUEUE, DestinationKind.TOPIC])
def test_a_sparkline_is_open_where_nobody_looked(kind):
    stood = range(NOW - 1800, NOW - 900)  # before NOW - 2700 the broker had not begun yet
    looked = [each for each in AN_HOUR if each.at >= NOW - 2700 and each.at not in stood]
    kept = [DestinationPoint(NOW - 2000, 100, 100, 0, 0), DestinationPoint(NOW - 60, 40, 0, 60, 0)]
    first, second = stretches(spark(kept, looked, NOW, kind, 40))
    assert (first[0][0], first[-1][0]) == (24, 49)
    assert (second[0][0], second[-1][0]) == (76, 100)


def test_a_sparkline_of_a_broker_that_has_just_begun_is_a_dot():
    assert spark([], [], NOW, DestinationKind.QUEUE, 7) == "M100,4h0"


def test_what_lies_below_a_sparkline_has_its_gaps():
    assert charts_history.spark_area("M0,12 30,10M100,4h0") == "M0,12 30,10V24H0ZM100,4h0V24H100Z"


def test_a_node_that_started_is_a_flag():
    found = starts_of_nodes([whole(10, started=5), whole(20, started=5), whole(40, started=35)])
    assert [(each.at, each.kind) for each in found] == [(35, "node")]


# -- the watch


@pytest.fixture
def watches(console):
    """A function that makes candidates for the watch; each as in a web process of its own."""
    made = []

    def candidate(judge=None) -> MetricsSampler:
        door = Gateway(gateway().admin.redis_url, gateway().admin.broker)
        source = BrokerMirror(door)
        wait_until(lambda: source.picture.nodes, "the picture of another process")
        watch = MetricsSampler(door, source, judge)
        door.loop.call_soon_threadsafe(watch._task.cancel)  # its rounds are made by the test
        wait_until(watch._task.done, "its own rounds to end")
        made.append((watch, source, door))
        return watch

    yield candidate
    for watch, source, door in made:
        watch.close()
        source.close()
        door.close()


def kept_of(name: str) -> list[DestinationPoint]:
    return charts_history.read_points(gateway(), FINE, [Destination.queue(name)])[0]


def holds(watch: MetricsSampler, name: str, depth: int) -> None:
    """Wait until its picture shows a queue with so many messages."""
    queue = Destination.queue(name)

    def shows() -> bool:
        stats = watch._mirror.picture.stats.get(queue)
        return stats is not None and stats.QueueSize == depth

    wait_until(shows, f"{name} with {depth} messages")


def round_of(watch: MetricsSampler, now: float) -> None:
    watch._door.run(watch.tick(now))


def test_one_of_two_processes_keeps_the_history_and_the_other_takes_over(watches, console, wait_for_mirror):
    first, start = watches(), time.time() // 60 * 60 + 600

    def is_on_duty() -> bool:  # at once, or when the lease of an earlier process has ended
        round_of(first, start)
        return first.on_duty

    wait_until(is_on_duty, "the first one on duty")
    second = watches()
    round_of(first, start)
    round_of(second, start)
    assert (first.on_duty, second.on_duty) == (True, False)
    console.send("/queue/remembered", *"abc")
    holds(first, "remembered", 3)
    round_of(first, start + 10)
    round_of(second, start + 10)
    assert [(point.at, point.pending, point.arrived) for point in kept_of("remembered")] == [(start + 10, 3, 3)]
    first.close()

    def takes_over() -> bool:
        round_of(second, start + 20)
        return second.on_duty

    wait_until(takes_over, "the other one on duty")
    assert first.holder != second.holder


def test_the_history_survives_those_who_wrote_it_and_minutes_are_merged(watches, console):
    watch = watches()
    queue, start = Destination.queue("merged"), time.time() // 60 * 60 + 1200
    round_of(watch, start)
    for step in range(1, 7):
        console.send("/queue/merged", "x")
        holds(watch, "merged", step)
        round_of(watch, start + 10 * step)
    coarse = charts_history.read_points(gateway(), COARSE, [queue])[0]
    assert [(point.pending, point.arrived) for point in coarse] == [(6, 6)]
    assert len(kept_of("merged")) == 6
    assert str(queue) in gateway().run(gateway().admin.rings.last_points())


def test_a_round_judges_with_the_picture_and_a_store_that_is_away_ends_nothing(watches, console, monkeypatch):
    judged = []
    watch = watches(lambda picture, now: judged.append(picture))
    round_of(watch, time.time())
    assert judged[0].nodes

    async def refuses(*_args):
        from brokerapp.errors import StoreUnavailable

        raise StoreUnavailable("full")

    monkeypatch.setattr(watch._door.admin.rings, "append", refuses)
    before = len(judged)
    round_of(watch, time.time() + 300)
    assert len(judged) == before + 1  # alerts are judged although nothing can be written


def test_a_ring_is_cut_to_its_length(console):
    rings = gateway().admin.rings
    kept = b"0" * 20
    for number in range(FINE.length + 40):
        gateway().run(rings.append(FINE, {"queue://ring": kept}, number))
    [found] = gateway().run(rings.read(FINE, ["queue://ring"]))
    assert FINE.length <= len(found) <= FINE.length + 31
    gateway().run(rings.remove(["queue://ring"], (FINE, COARSE)))
    assert gateway().run(rings.read(FINE, ["queue://ring"])) == [[]]


def test_a_lease_is_had_by_one_and_given_back(console):
    admin = gateway().admin
    assert gateway().run(admin.acquire_lease("test", "one", 60_000))
    assert not gateway().run(admin.acquire_lease("test", "two", 60_000))
    assert gateway().run(admin.acquire_lease("test", "one", 60_000))
    gateway().run(admin.rings.release_lease("test", "one"))
    wait_until(lambda: gateway().run(admin.acquire_lease("test", "two", 1000)), "the lease")
    assert LEASE != "test"


def test_a_chart_is_asked_for_again_with_its_flags_of_what_one_may_see(browser_of, console, wait_for_mirror, watches):
    console.send("/queue/charted", "x")
    wait_for_mirror("charted", 1)
    round_of(watches(), time.time())
    operator = browser_of("operator")
    operator.post(reverse("purge", args=["charted"]), {"name": "charted"})
    assert AuditEntry.objects.get(action="purge").outcome == "done"
    chart = operator.get(reverse("queue-chart", args=["charted"])).json()
    assert ["change", "purge of queue://charted"] in [flag[1:3] for flag in chart["events"]]
    chart = operator.get(reverse("chart"), {"window": "24h"}).json()
    assert chart["seconds"] == 86400
    assert chart["summary"]
    elsewhere = browser_of("viewer", "elsewhere.>").get(reverse("chart")).json()
    assert not [flag for flag in elsewhere["events"] if flag[1] == "change"]
    assert gateway().run(gateway().admin.rings.read(FINE, [BROKER_RING]))[0]


def test_the_overview_keeps_its_window_in_the_url(browser_of, console):
    viewer, now = browser_of("viewer"), int(time.time())
    page = viewer.get(reverse("overview"), {"from": now - 600, "to": now - 300})
    assert (page.context["chart"]["live"], page.context["chart"]["seconds"]) == (False, 300)
    assert mirror().current()


# -- what is gone


def test_a_queue_that_is_gone_has_a_page_with_its_last_history(browser_of, console):
    name, at = "gone.by.now", int(time.time()) // 60 * 60 - 7200
    rows = {f"queue://{name}": pack_point(DestinationPoint(at, 7, 7, 0, 0)), BROKER_RING: pack_point(whole(at))}
    gateway().run(gateway().admin.rings.append(COARSE, rows, at))
    viewer = browser_of("viewer")
    page = viewer.get(reverse("queue", kwargs={"name": name}))
    assert page.status_code == 410
    assert "no longer exists" in page.content.decode()
    assert page.context["window"].name == "24h", "the shortest that shows how it ended"
    assert 7 in [mark[1] for mark in page.context["chart"]["marks"]]
    assert page.context["changes"] == ()  # the trail is for others
    assert viewer.get(reverse("topic", kwargs={"name": name})).status_code == 404, "it was none"
    assert browser_of("viewer", "elsewhere.>", name="g").get(reverse("queue", kwargs={"name": name})).status_code == 403


def test_who_may_read_the_trail_sees_who_deleted_it(admin, console, wait_for_mirror):
    console.send("/queue/made.and.gone", "1")
    wait_for_mirror("made.and.gone", 1)
    admin.post(reverse("delete-queue", kwargs={"name": "made.and.gone"}), {"name": "made.and.gone"})
    page = admin.get(reverse("queue", kwargs={"name": "made.and.gone"}))
    assert page.status_code == 410
    assert [each.action for each in page.context["changes"]] == ["delete"]
    for messages in (
        reverse("messages", kwargs={"name": "made.and.gone"}),
        reverse("message", kwargs={"name": "made.and.gone", "seq": 1}),
    ):
        page = admin.get(messages)
        assert (page.status_code, page.context["destination"].name) == (410, "made.and.gone")
    assert admin.get(reverse("messages", kwargs={"name": "never.was"})).status_code == 404


def test_the_page_of_a_queue_that_is_gone_is_told_by_the_archive_where_the_store_knows_it_no_more(
    browser_of, console, tmp_path, monkeypatch
):
    monkeypatch.setattr(rollup_history, "rollups", lambda: rollup_history.RollupQueries(tmp_path))
    made, at = RollupStore(tmp_path), int(time.time()) // 3600 * 3600 - 3 * 3600
    made.add([EventCounts({}, [DepthNote(at * 1_000_000, "queue://past.a", 12, "all")])], 1)
    made.close()
    answer = browser_of("viewer").get(reverse("queue", kwargs={"name": "past.a"}))
    assert (answer.status_code, answer.context["window"].name) == (410, "24h")
    assert 12 in [mark[1] for mark in answer.context["chart"]["marks"]]
    assert "Send test message" not in answer.content.decode()
