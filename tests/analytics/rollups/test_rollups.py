"""Test that rollups agree with the events, count each once, and answer queries over days."""

import signal
import sqlite3
from collections import Counter

import duckdb
import pytest
from forks import exit_of_archiver
from recorded_traffic import BROKER, message, send

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US, to_archive_schema
from analytics.rollups import store as rollups_module
from analytics.rollups.counters import (
    COUNTED,
    NUMBERS,
    ConsumerNote,
    CounterCell,
    DepthNote,
    EventCounts,
    count_events,
    merge_histograms,
    pack_histogram,
    unpack_histogram,
)
from analytics.rollups.log_histogram import negative_durations, percentile
from analytics.rollups.queries import WHOLE_BROKER, RollupQueries, width_for
from analytics.rollups.store import DAY, HOUR, MINUTE, NAME, OTHERS, TEMPORARY, RollupStore
from brokerapp.tracing.consumers import EVERYWHERE, ConsumerRecorder
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import (
    ACK,
    ALL,
    CHANGED,
    DEAD_LETTER,
    DISPATCH,
    DROP,
    EXPIRE,
    FORWARD,
    MOVE,
    ROLLBACK,
)
from brokerapp.tracing.schema import START as BEGAN
from tests.analytics.archive.test_archiver import flush, record

START_US = 1_760_000_400_000_000 // HOUR_US * HOUR_US
START = START_US // 1_000_000
A, B = "queue://a", "queue://b"


@pytest.fixture
def archive(tmp_path) -> BrokerArchive:
    return BrokerArchive(tmp_path / "archive", BROKER)


def kept(archive: BrokerArchive, width: int, destination: str = "", consumer: str = "") -> dict[int, dict[str, int]]:
    """What is counted, by the beginning of its stretch of time."""
    points = RollupQueries(archive.folder).points(START - DAY, START + 3 * DAY, width, destination, consumer)
    return {
        each.start: {name: number for name, number in zip(COUNTED, each.cell.numbers, strict=False) if number}
        for each in points
    }


def in_the_files(archive: BrokerArchive, width: int, destination: str = "", consumer: str = "") -> dict:
    """The same from the events, as another engine counts them."""
    rows = duckdb.sql(
        f"SELECT epoch(ts)::BIGINT // {width} * {width} AS start, kind, sum(weight)::BIGINT "
        f"FROM '{archive.folder}/day=*/*/*.parquet' WHERE kind <> 'depth' "
        f"AND ('{destination}' = '' OR destination = '{destination}') "
        f"AND ('{consumer}' = '' OR consumer = '{consumer}') GROUP BY ALL"
    ).fetchall()
    found: dict = {}
    for start, kind, number in rows:
        found.setdefault(start, {})[kind] = number
    return found


def agree(archive: BrokerArchive) -> None:
    for width in (MINUTE, HOUR, DAY):
        for place in [("", ""), (A, ""), (B, ""), (A, "c1")]:
            assert kept(archive, width, *place) == in_the_files(archive, width, *place), (width, place)


def test_rollups_count_what_duckdb_counts_in_the_files(store, store_url, archive):
    record(store, 0, 90, step_us=61_000_000)
    flush(store_url, archive)
    record(store, 90, 30, start_us=START_US + 40 * 60_000_000)
    flush(store_url, archive)
    agree(archive)


@pytest.mark.parametrize("fault", ["committed", "before-rollups", "before-trim"])
def test_an_archiver_killed_before_it_counted_counts_once(fault, store, store_url, archive, environment_variables):
    record(store, 0, 70, step_us=60_000_000)
    assert exit_of_archiver(environment_variables, fault) == -signal.SIGKILL
    record(store, 70, 10)
    flush(store_url, archive)
    agree(archive)


def test_an_archive_that_has_no_rollups_yet_gets_them(store, store_url, archive):
    record(store, 0, 70, step_us=60_000_000)
    flush(store_url, archive)
    for path in archive.folder.glob(f"{NAME}*"):
        path.unlink()
    flush(store_url, archive)
    agree(archive)


def counted(recorder: TraceRecorder) -> EventCounts:
    return count_events(to_archive_schema(decode(recorder.take_encoded()[0]), 1))


def test_latencies_are_within_their_error_and_weights_are_counted():
    recorder = TraceRecorder(BROKER)
    latencies = [1, 900, 1_000, 5_000, 250_000, 90_000_000]
    for number, us in enumerate(latencies):
        recorder.record_one(ACK, START_US + us, message(number, START_US), A, A, "c1", None)
    events = to_archive_schema(decode(recorder.take_encoded()[0]), 1)
    cells = count_events(events).cells
    latency: dict = {}
    for cell in cells.values():
        latency |= cell.latency
    assert percentile(latency.items(), 0.5) == pytest.approx(1000, rel=0.023)
    assert percentile(latency.items(), 1.0) == pytest.approx(90_000_000, rel=0.023)
    assert percentile({}, 0.5) is None
    place = events.schema.get_field_index("weight")
    weighted = events.set_column(place, "weight", [[10] * len(latencies)])
    assert sum(cell.numbers[COUNTED.index("ack")] for cell in count_events(weighted).cells.values()) == 60


def test_acks_before_their_messages_arrival_are_told_apart_and_no_percentile_counts_them():
    recorder = TraceRecorder(BROKER)
    for number, us in enumerate([1000, 1000, -1, -40_000]):
        recorder.record_one(ACK, START_US + us, message(number, START_US), A, A, "c1", None)
    latency: Counter = Counter()
    for cell in counted(recorder).cells.values():
        latency.update(unpack_histogram(pack_histogram(cell.latency)))
    assert percentile(latency.items(), 0.01) == percentile(latency.items(), 1) == pytest.approx(1000, rel=0.023)
    found = negative_durations(latency.items())
    assert (found.count, found.most_us) == (2, pytest.approx(40_000, rel=0.023))
    assert negative_durations({5: 1}.items()).count == 0


def test_drops_of_what_was_never_stored_and_expiries_take_nothing_from_what_waits(tmp_path):
    recorder = TraceRecorder(BROKER)
    made = [message(number, START_US) for number in range(4)]
    recorder.record(FORWARD, START_US, made[:3], (A,), A)
    for kind, one, reason in (
        (EXPIRE, made[0], "expired"), (DEAD_LETTER, made[0], "expired"), (DROP, made[1], "removed by an operator"),
        (DROP, made[3], "the queue is full"), (MOVE, made[2], "moved by an operator"),
    ):  # fmt: skip
        recorder.record_one(kind, START_US + 1, one, A, A, None, reason)
    rollups = RollupStore(tmp_path)
    rollups.add([counted(recorder)], 1)
    rollups.close()
    [(_, _, came, left, _)] = RollupQueries(tmp_path).flows(START, START + HOUR, HOUR, [A])
    assert (came, left) == (3, 3)


def test_a_file_of_rollups_of_an_earlier_version_goes_on(tmp_path):
    RollupStore(tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as db:
        for name in ("rollback", "move", "delay", "never_stored"):
            db.execute(f'ALTER TABLE cell DROP COLUMN "{name}"')
    rollups, recorder = RollupStore(tmp_path), TraceRecorder(BROKER)
    recorder.record_one(ROLLBACK, START_US, message(1, START_US), A, A, "c1", "ABORT")
    rollups.add([counted(recorder)], 1)
    rollups.close()
    [point] = RollupQueries(tmp_path).points(START, START + HOUR, HOUR, A)
    assert (point.cell["rollback"], point.cell["enqueue"]) == (1, 0)


def test_kept_histograms_add_up():
    one, other = {3: 5, 900: 1}, {3: 1, 7: 2}
    assert unpack_histogram(merge_histograms(pack_histogram(one), pack_histogram(other))) == {3: 6, 7: 2, 900: 1}
    assert merge_histograms(None, pack_histogram(other)) == pack_histogram(other)
    assert merge_histograms(pack_histogram({}), None) is None


def test_bytes_in_and_out_are_counted():
    recorder = TraceRecorder(BROKER)
    made = message(1, START_US, size=100)
    recorder.record_enqueue(START_US, [made], A)
    recorder.record(FORWARD, START_US, [made], [A, B], A)
    recorder.record_one(DISPATCH, START_US + 5, made, A, A, "c1", None)
    recorder.record_one(ACK, START_US + 5, made, A, A, "c1", None)
    [(a, b)] = [(c.cells[A, "", START // 60], c.cells[A, "c1", START // 60]) for c in [counted(recorder)]]
    numbers = {name: a[name] for name in NUMBERS if a[name]}
    assert numbers == {"enqueue": 1, "forward": 1, "enqueued_bytes": 100, "forwarded_bytes": 100}
    assert {name: b[name] for name in NUMBERS if b[name]} == {"dispatch": 1, "ack": 1, "acked_bytes": 100}


@pytest.fixture
def rollups(tmp_path):
    made = RollupStore(tmp_path)
    yield made
    made.close()


def depths(*noted: tuple[float, str, int, str]) -> EventCounts:
    return EventCounts({}, [DepthNote(START_US + int(minute * 60_000_000) + 1, *rest) for minute, *rest in noted])


def test_depths_of_any_past_minute_are_known(rollups, tmp_path):
    rollups.add([depths((0, A, 5, ALL), (0, B, 1, ALL), (2, A, 7, CHANGED), (3, B, 0, CHANGED))], 1)
    rollups.add([depths((60, A, 7, ALL), (62, A, 0, CHANGED))], 2)
    past = RollupQueries(tmp_path)

    def at(minute):
        return past.depths_at(START + minute * MINUTE + 30).of

    assert past.depths_at(START - 1) is None
    assert [at(minute) for minute in (0, 1, 2, 3, 59)] == [{A: 5, B: 1}] * 2 + [{A: 7, B: 1}] + [{A: 7}] * 2
    assert [at(minute) for minute in (60, 62, 200)] == [{A: 7}, {}, {}]
    assert past.depths_at(START + 200 * MINUTE).noted == START + 62 * MINUTE
    assert past.depths_before(START + 150, [A]) == {A: 7}
    [hour, _] = past.points(START, START + 2 * HOUR, HOUR, A)
    assert (hour.depth, hour.most) == (7, 7)
    assert [(each.depth, each.most) for each in past.points(START, START + DAY, HOUR)] == [(7, 8), (0, 7)]


def standing(folder, minute: int) -> tuple[dict[str, int], int]:
    """What is said of a minute: what each destination holds, and all together."""
    past = RollupQueries(folder)
    [*_, last] = past.points(START, START + minute * MINUTE + 1, MINUTE)
    return past.depths_at(START + minute * MINUTE).of, last.depth


def test_what_a_broker_that_starts_does_not_note_is_empty(rollups, tmp_path):
    rollups.add([depths((0, A, 5, ALL), (0, B, 1, ALL), (7, A, 4, BEGAN))], 1)
    assert standing(tmp_path, 7) == ({A: 4}, 4)


def test_at_a_full_hour_each_of_several_nodes_notes_its_own_and_says_nothing_of_those_of_others(rollups, tmp_path):
    rollups.add([depths((0, A, 5, ALL)), depths((0.01, B, 3, ALL))], 1)
    assert standing(tmp_path, 0) == ({A: 5, B: 3}, 8)
    rollups.add([depths((60, A, 5, ALL)), depths((61, B, 3, ALL))], 2)
    assert standing(tmp_path, 61) == ({A: 5, B: 3}, 8)


def test_what_nobody_noted_for_an_hour_became_empty_without_a_note(rollups, tmp_path):
    rollups.add([depths((1, A, 5, CHANGED), (1, B, 3, CHANGED), (60, A, 5, ALL))], 1)
    assert standing(tmp_path, 60) == ({A: 5}, 8)  # B's node may be late
    rollups.add([depths((120, A, 5, ALL))], 2)
    assert standing(tmp_path, 120) == ({A: 5}, 5)


def test_depths_are_told_as_a_node_notes_them(store, store_url, archive):
    recorder = TraceRecorder(BROKER)
    noted = DepthRecorder(recorder)
    noted.record(START_US, {A: 5, B: 2})
    noted.record(START_US + 60_000_000, {A: 5})
    send(store, recorder)
    flush(store_url, archive)
    assert RollupQueries(archive.folder).depths_at(START + 60).of == {A: 5}


def cells(*places: tuple[str, str]) -> EventCounts:
    return EventCounts({(*place, START // 60): CounterCell([1] * len(NUMBERS)) for place in places}, [])


def test_names_that_clients_make_up_are_bounded(rollups, tmp_path, monkeypatch):
    monkeypatch.setattr(rollups_module, "MAX_CONSUMERS", 2)
    monkeypatch.setattr(rollups_module, "MAX_DESTINATIONS", 4)
    rollups.add([cells(*((A, f"c{number}") for number in range(5)))], 1)
    rollups.add(
        [cells(("temp-queue://1", "x"), ("temp-queue://2", ""), (B, ""), ("queue://c", ""), ("queue://d", "y"))], 2
    )
    past = RollupQueries(tmp_path)
    [of_others] = past.points(START, START + MINUTE, MINUTE, A, OTHERS)
    assert of_others.cell.numbers[0] == 3
    assert past.consumers(A) == [OTHERS, "c0", "c1"]
    assert past.points(START, START + MINUTE, MINUTE, A)[0].cell.numbers[0] == 5
    assert past.points(START, START + MINUTE, MINUTE, TEMPORARY)[0].cell.numbers[0] == 2
    assert past.points(START, START + MINUTE, MINUTE)[0].cell.numbers[0] == 10
    assert past.points(START, START + MINUTE, MINUTE, OTHERS)[0].cell.numbers[0] == 2


def test_what_was_counted_is_not_counted_again(rollups, tmp_path):
    rollups.add([cells((A, ""))], 5)
    rollups.add([cells((A, ""))], 5)
    assert RollupQueries(tmp_path).points(START, START + MINUTE, MINUTE, A)[0].cell.numbers[0] == 1


def test_what_is_old_goes_the_fine_first(rollups, tmp_path):
    rollups.add([cells((A, "c1")), depths((0, A, 5, ALL))], 1)
    past, window = RollupQueries(tmp_path), (START - DAY, START + DAY)
    for days, left in [(1, (1, 1, 1)), (3, (0, 1, 1)), (70, (0, 0, 1)), (4000, (0, 0, 0))]:
        rollups.delete_expired(START + days * DAY)
        assert tuple(len(past.points(*window, width, A)) for width in (MINUTE, HOUR, DAY)) == left or days >= 70
        assert (past.depths_at(START + 60) is not None) == (days < 31)
    rollups.add([cells((A, "c1"))], 2)  # names that were forgotten come anew
    assert past.points(START, START + MINUTE, MINUTE, A, "c1")[0].cell.numbers[0] == 1


def test_an_archive_without_rollups_knows_nothing(tmp_path):
    past = RollupQueries(tmp_path)
    assert past.points(0, 60, 60) == past.consumers(A) == []
    assert past.depths_at(START) is None
    assert past.depths_before(START, [WHOLE_BROKER]) == {}


@pytest.mark.parametrize(
    ("ago", "seconds", "width"),
    [(0, 900, MINUTE), (0, DAY, MINUTE), (0, 7 * DAY, HOUR), (0, 30 * DAY, HOUR), (0, 90 * DAY, DAY),
     (5 * DAY, HOUR, HOUR)],
)  # fmt: skip
def test_a_window_is_told_of_as_finely_as_it_is_kept(ago, seconds, width):
    assert width_for(START - ago - seconds, START - ago, START) == width


def test_the_consumers_of_a_queue_are_known_with_the_time_since_when_there_are_any_or_none(archive):
    archive.folder.mkdir(parents=True)
    store, moment = RollupStore(archive.folder), START_US

    def note(*notes):
        nonlocal moment
        moment += 60_000_000
        store.add([EventCounts({}, [], [ConsumerNote(moment, *each) for each in notes])], moment)

    def known():
        found = RollupQueries(archive.folder).consumers_since()
        return {name: (each.clients, (each.since - START) // 60) for name, each in found.items()}

    note((A, 1), ("topic://t", 1), ("temp-queue://t", 1))
    note((A, 2), (B, 1))
    assert known() == {A: (2, 1), B: (1, 2)}
    note((A, 1))
    note((A, 0))
    note((A, 0))
    assert known() == {A: (0, 4), B: (1, 2)}
    assert list(RollupQueries(archive.folder).consumers_since([B])) == [B]
    note((EVERYWHERE, 0))
    assert known() == {A: (0, 4), B: (0, 6)}
    note((A, 1))
    assert known()[A] == (1, 7)
    store.close()


def test_what_clients_subscribe_to_is_read_from_events_in_their_order():
    recorder = TraceRecorder(BROKER)
    consumers = ConsumerRecorder(recorder)
    consumers.on_subscribed(A, "one")
    consumers.on_subscribed(A, "two")
    consumers.on_unsubscribed(A, "one")
    consumers.on_broker_started()
    notes = count_events(to_archive_schema(decode(recorder.take_encoded()[0]), 1)).consumers
    assert [(each.destination, each.clients) for each in notes] == [(A, 1), (A, 2), (A, 1), (EVERYWHERE, 0)]


def test_queues_that_were_forgotten_have_no_consumers_that_left(archive):
    archive.folder.mkdir(parents=True)
    store = RollupStore(archive.folder)
    store.add([EventCounts({}, [], [ConsumerNote(START_US, A, 0), ConsumerNote(START_US, B, 1)])], 1)
    store.delete_expired(START + DAY)
    assert set(RollupQueries(archive.folder).consumers_since()) == {B}
    store.close()
