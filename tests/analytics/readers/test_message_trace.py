"""Test the search for single messages in the archive, by its index, and in unarchived events."""

import struct
import zlib
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest
from recorded_traffic import BROKER, message, send

from analytics.archive import bloom_index
from analytics.archive.archiver import Archiver
from analytics.archive.bloom_index import IndexKey
from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.trace_stream import TraceStream
from analytics.readers.message_trace import TraceReader
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DISPATCH, FORWARD

HOUR_US = 3_600_000_000
START_US = 1_760_000_400_000_000 // HOUR_US * HOUR_US
QUEUE = "queue://a"


def recorded(first: int, count: int, start_us: int = START_US) -> TraceRecorder:
    """Messages first.. that were sent, dispatched and acknowledged."""
    recorder = TraceRecorder(BROKER)
    for number in range(first, first + count):
        now = start_us + number
        made = message(number, now, order=str(number % 100), n=str(number))
        recorder.record_enqueue(now, [made], QUEUE)
        recorder.record(FORWARD, now, [made], [QUEUE], QUEUE)
        recorder.record_one(DISPATCH, now + 1, made, QUEUE, QUEUE, "c1", None)
        recorder.record_one(ACK, now + 2, made, QUEUE, QUEUE, "c1", None)
    return recorder


def archive_hours(folder, hours: int, files: int = 3, indexed=("order",)) -> BrokerArchive:
    archive, number = BrokerArchive(folder, BROKER, indexed=indexed), 0
    for hour in range(hours):
        for _ in range(files):
            archive.append(
                decode(recorded(number, 20, START_US + hour * HOUR_US).take_encoded()[0]),
                ArchiveCommit(f"{number + 1}-0"),
            )
            number += 20
    return archive


def id_of(number: int) -> str:
    return f"ID:sluice-1:{number}"


def opened(monkeypatch) -> list[str]:
    """The Parquet files that were read from now on."""
    import analytics.readers.message_trace as module

    files, read = [], module.pq.read_table

    def read_table(path, **options):
        files.append(path.name)
        return read(path, **options)

    monkeypatch.setattr(module.pq, "read_table", read_table)
    return files


def test_a_message_is_found_with_all_that_happened_to_it_and_few_files_are_opened(
    store, store_url, tmp_path, monkeypatch
):
    archive_hours(tmp_path, 4)
    files = opened(monkeypatch)
    found = TraceReader(tmp_path, store_url, BROKER).read([id_of(130)])
    assert [each.kind for each in found.events] == ["enqueue", "forward", "dispatch", "ack"]
    assert found.events[0].properties == {"order": "30", "n": "130"}
    assert found.complete
    assert len(files) <= 2  # one, and perhaps one that only might have held it


def test_messages_are_found_by_a_property_that_is_indexed(store, store_url, tmp_path):
    archive_hours(tmp_path, 2)
    found = TraceReader(tmp_path, store_url, BROKER).find("7", ["order"])
    assert [each.msg_id for each in found.events] == [id_of(7), id_of(107)]
    assert TraceReader(tmp_path, store_url, BROKER).find(id_of(9), []).events[0].msg_id == id_of(9)
    assert TraceReader(tmp_path, store_url, BROKER).find("never", ["order"]).events == []


def test_what_is_not_archived_yet_is_found_and_nothing_is_told_twice(store, store_url, tmp_path):
    send(store, recorded(1, 10))
    trace = TraceReader(tmp_path, store_url, BROKER)
    assert len(trace.read([id_of(5)]).events) == 4
    archiver = Archiver(TraceStream(store_url, BROKER), BrokerArchive(tmp_path, BROKER), lambda _step: None)
    archiver.flush()
    assert len(trace.read([id_of(5)]).events) == 4
    send(store, recorded(11, 10))
    assert [each.msg_id for each in trace.find(id_of(12), []).events] == [id_of(12)]


def test_files_that_the_index_does_not_know_are_looked_into(store, store_url, tmp_path):
    archive = archive_hours(tmp_path, 1)
    [index] = archive.folder.rglob(bloom_index.NAME)
    index.unlink()
    assert len(TraceReader(tmp_path, store_url, BROKER).read([id_of(30)]).events) == 4


def numbers(*texts: str) -> np.ndarray:
    return bloom_index.hash_keys(pa.array(texts, pa.string()))


def test_a_torn_end_of_the_index_is_cut_off_and_what_follows_is_read(tmp_path):
    bloom_index.add(tmp_path, "a", numbers("1"))
    whole = (tmp_path / bloom_index.NAME).stat().st_size
    bloom_index.add(tmp_path, "b", numbers("2"))
    with (tmp_path / bloom_index.NAME).open("r+b") as index:
        index.truncate(whole + 5)
    assert bloom_index.candidates(tmp_path, [IndexKey("2")]) == (set(), {"a"})
    bloom_index.add(tmp_path, "c", numbers("2"))
    assert bloom_index.candidates(tmp_path, [IndexKey("2")]) == ({"c"}, {"a", "c"})


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_the_index_never_denies_what_is_there_and_seldom_suspects_what_is_not(tmp_path, count):
    texts = [f"ID:node-1:{number}" for number in range(count)]
    bloom_index.add(tmp_path, "f", numbers(*texts))
    assert all(bloom_index.candidates(tmp_path, [IndexKey(text)])[0] for text in texts[:200])
    others = (IndexKey(f"ID:node-1:{number}") for number in range(count, count + 1000))
    assert sum(bool(bloom_index.candidates(tmp_path, [other])[0]) for other in others) < 10


def test_the_same_text_is_another_key_as_an_id_and_as_a_value_of_each_property():
    [id], [value], [other] = (bloom_index.hash_keys(pa.array(["x"]), name) for name in ("", "a", "b"))
    assert len({id, value, other}) == 3


def test_a_text_has_one_number_wherever_it_stands_in_a_column():
    texts = pa.array(["left out", "ab", "é\0\n", "a" * 1000, "abc"])
    assert [bloom_index.hash_keys(pa.array([text]))[0] for text in texts.slice(1).to_pylist()] == list(
        bloom_index.hash_keys(texts.slice(1))
    )


def test_an_index_of_the_first_version_is_read(tmp_path):
    bits = np.zeros(64, np.uint8)
    number = int.from_bytes(blake2b(b"\0ID:1", digest_size=8).digest(), "little")
    for probe in range(8):
        bits[((number & 0xFFFFFFFF) + probe * (number >> 32 | 1)) % 64] = 1
    record = struct.pack("<HI", 1, 64) + b"f" + np.packbits(bits).tobytes()
    (tmp_path / "_keys").write_bytes(record + struct.pack("<I", zlib.crc32(record)))
    assert bloom_index.candidates(tmp_path, [IndexKey("ID:1")]) == ({"f"}, {"f"})
    assert bloom_index.candidates(tmp_path, [IndexKey("ID:2")]) == (set(), {"f"})


def test_a_look_ends_at_its_deadline_and_says_that_it_saw_not_everything(store, store_url, tmp_path):
    archive_hours(tmp_path, 2)
    assert not TraceReader(tmp_path, store_url, BROKER).read([id_of(3)], patience=-1.0).complete
