"""Ten thousand queues: a page of the list, the live frame and the history's step stay small."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from django.urls import reverse

from brokerapp.destination import Destination, Kind
from brokerapp.history import Point
from brokerapp.snapshot import DestinationStats
from brokerapp.store import Batch, Limits
from brokerapp.store.redis import RedisStore
from console import history
from console.gateway import gateway
from console.listing import PAGE_SIZES
from console.live.mirror import mirror
from console.live.picture import Picture, first, updated
from console.live.socket import SPARKS_A_FRAME
from console.live.topics import CELLS, Topic
from console.watch import MAX_DESTINATIONS, Watch
from tests.conftest import until

QUEUES = 10_000
#: What the figures are on a quiet machine of two cores, times what a busy one may need.
PAGE_SECONDS, MARGIN = 0.3, 2
FRAME_BYTES = 50_000


def name_of(number: int) -> str:
    return f"shop.region-{number % 40:02}.orders.incoming-{number:05}"


@pytest.fixture(scope="module")
def crowded_store(store_url, request) -> None:
    """The queues, in the store before the module's node looks: a node of thousands of connections would take longer."""

    async def declare() -> None:
        store = RedisStore(store_url, request.module.__name__.rpartition(".")[2])
        await store.open()
        await store.claim("before")
        logs = [(str(Destination.queue(name_of(number))), json.dumps({"kind": "queue"})) for number in range(QUEUES)]
        for start in range(0, QUEUES, 1000):
            await store.commit("before", Batch(start + 1, [], declarations=logs[start : start + 1000]), Limits())
        await store.close()

    asyncio.run(declare())


@pytest.fixture
def crowd(crowded_store, running_broker, console):
    """The console on a broker with ten thousand queues."""
    until(lambda: len(mirror().picture.stats) >= QUEUES, "all queues in the picture", seconds=30)
    return console


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"sort": "-QueueSize", "size": "100"},
        {"q": "region-07", "show": "no-consumer"},
        {"page": "100", "size": "100"},
    ],
)
def test_a_page_of_the_list_answers_in_time(browser_of, crowd, query):
    viewer = browser_of("viewer")
    viewer.get(reverse("queues"))  # templates are compiled once
    took = []
    for _ in range(3):
        started = time.perf_counter()
        page = viewer.get(reverse("queues"), query)
        took.append(time.perf_counter() - started)
    assert page.context["page"].existing >= QUEUES
    assert min(took) < PAGE_SECONDS * MARGIN, took


def moving(count: int) -> tuple[Picture, list[DestinationStats]]:
    """A picture of so many queues of which all have just changed, and in which all numbers are long."""
    rows = [
        DestinationStats(
            Destination.queue(name_of(number)), QueueSize=1_234_567, EnqueueCount=9_876_543 + number,
            DequeueCount=8_641_976, DispatchCount=8_641_999, InFlightCount=1_000, ConsumerCount=100,
        )
        for number in range(count)
    ]  # fmt: skip
    return updated(first(100, 1, [], Picture()), 101, 2, rows, []), rows


def test_the_largest_live_frame_of_a_list_stays_small():
    picture, rows = moving(QUEUES)
    shown = tuple(each.destination.name for each in rows[: max(PAGE_SIZES)])
    cells = CELLS["list"](picture, Topic("list", "queues?size=100", shown), lambda destination: True)
    for name in shown[:SPARKS_A_FRAME]:
        cells["rows"][name]["spark"] = history.spark(_restless(), 3600, Kind.QUEUE, 5)
    assert len(json.dumps({"type": "frame", "topics": {"list:queues?size=100": cells}})) < FRAME_BYTES


def _restless() -> list[Point]:
    """An hour that makes the longest line."""
    return [Point(10 * step, step * 7919 % 9973, 1, 1, 0) for step in range(360)]


def test_a_step_of_the_history_with_all_queues_moving_is_bounded(crowd):
    watch = Watch(gateway(), mirror())
    gateway().loop.call_soon_threadsafe(watch._task.cancel)
    until(watch._task.done, "its own rounds to end")
    start = time.time() // 60 * 60 + 600
    gateway().run(watch.round(start))
    picture, _ = moving(QUEUES)

    class Still:
        """A mirror that shows all of them moved."""

        def __init__(self) -> None:
            self.picture = Picture(nodes=mirror().picture.nodes, stats=picture.stats, at=start, trouble="")

    watch._mirror = Still()
    started = time.process_time()
    gateway().run(watch.round(start + 10))
    took = time.process_time() - started
    moved = gateway().run(gateway().admin.rings.moved())
    assert len(moved) == MAX_DESTINATIONS
    assert took < 1.0, f"{took:.3f} s"
    watch.close()
