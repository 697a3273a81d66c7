"""Test that recorded events are returned, single ones and batches, within limits."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.model.message import Message
from brokerapp.tracing import encoding
from brokerapp.tracing import recorder as recorder_module
from brokerapp.tracing.arrow_schema import SCHEMA
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import NullTraceRecorder, TraceRecorder
from brokerapp.tracing.sampling import SamplingRule, sample_batch
from brokerapp.tracing.schema import (
    ACK,
    DEAD_LETTER,
    DISPATCH,
    DROP,
    ENQUEUE,
    EXPIRE,
    FORWARD,
    KINDS,
    REDELIVER,
    VERSION,
    VERSION_KEY,
)  # fmt: skip

START = 1_760_000_000_000_000
TOPIC, EU, US = "topic://VirtualTopic.Orders", "queue://Consumer.A.VirtualTopic.Orders", "queue://Consumer.B.VT"


def message(number: int, body: bytes = b"hello", **properties: str) -> Message:
    lines = "".join(f"{name}:{value}\n" for name, value in properties.items())
    head = f"message-id:ID\\csluice-1\\c{number}\n{lines}"
    return Message(f"ID:sluice-1:{number}", head.encode(), body, born_us=START + number)


def moment(us: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def events(recorder: TraceRecorder, limit: int = recorder_module.BATCH_EVENTS) -> list[dict]:
    rows = []
    while batch := recorder.take_encoded(limit):
        table = decode(batch[0])
        assert table.num_rows == batch[1]
        rows += table.to_pylist()
    assert recorder.pending == 0
    return rows


def row(ts, kind, id, destination, original, consumer=None, reason=None, size=5, ps=None, pn=None) -> dict:
    return {
        "ts": moment(ts), "kind": KINDS[kind], "msg_id": f"ID:sluice-1:{id}", "destination": destination,
        "original": original, "consumer": consumer, "broker": "sluice", "size": size, "born": moment(START + id),
        "reason": reason, "ps": ps, "pn": pn, "weight": 1,
    }  # fmt: skip


def test_each_kind_of_event_comes_back_with_all_its_columns():
    recorder = TraceRecorder("sluice")
    recorder.record_enqueue(START, [message(1, region="eu", amount="7")], TOPIC, "shop")
    for kind in (FORWARD, DISPATCH, ACK, REDELIVER, EXPIRE, DEAD_LETTER, DROP):
        recorder.record_one(kind, START + kind, message(2, b"12"), EU, TOPIC, f"c{kind}", f"why {kind}")
    assert events(recorder) == [
        row(START, ENQUEUE, 1, TOPIC, TOPIC, "shop", ps=[("region", "eu"), ("amount", "7")], pn=[("amount", 7.0)]),
        *(
            row(START + kind, kind, 2, EU, TOPIC, f"c{kind}", f"why {kind}", size=2)
            for kind in (FORWARD, DISPATCH, ACK, REDELIVER, EXPIRE, DEAD_LETTER, DROP)
        ),
    ]


def test_bulk_events_are_those_that_would_have_been_noted_one_by_one():
    recorder = TraceRecorder("sluice")
    recorder.record(FORWARD, START, [message(1)], [EU, US], TOPIC)
    recorder.record(ACK, START + 1, [message(1), message(2, b"")], [EU, US], TOPIC, "c1")
    recorder.record(FORWARD, START + 2, [message(3)], [], TOPIC)
    recorder.record(DROP, START + 3, [message(4)], [US], TOPIC)
    assert recorder.pending == recorder.recorded == 7
    assert events(recorder) == [
        row(START, FORWARD, 1, EU, TOPIC), row(START, FORWARD, 1, US, TOPIC),
        row(START + 1, ACK, 1, EU, TOPIC, "c1"), row(START + 1, ACK, 1, US, TOPIC, "c1"),
        row(START + 1, ACK, 2, EU, TOPIC, "c1", size=0), row(START + 1, ACK, 2, US, TOPIC, "c1", size=0),
        row(START + 3, DROP, 4, US, TOPIC),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_nothing_is_lost_or_doubled_however_small_the_batches_taken(limit):
    recorder = TraceRecorder("sluice")
    expected = []
    for number in range(10):
        ts = START + number
        recorder.record_enqueue(ts, [message(number, n=str(number))], TOPIC)
        recorder.record(FORWARD, ts, [message(number)], [EU, US], TOPIC)
        recorder.record(DISPATCH, ts, [message(number), message(number + 100)], [EU], TOPIC, "c")
        expected += [
            row(ts, ENQUEUE, number, TOPIC, TOPIC, ps=[("n", str(number))], pn=[("n", float(number))]),
            row(ts, FORWARD, number, EU, TOPIC), row(ts, FORWARD, number, US, TOPIC),
            row(ts, DISPATCH, number, EU, TOPIC, "c"), row(ts, DISPATCH, number + 100, EU, TOPIC, "c"),
        ]  # fmt: skip
    found = events(recorder, limit)

    def key(event):
        return event["ts"], KINDS.index(event["kind"]), event["msg_id"], event["destination"]

    assert sorted(found, key=key) == sorted(expected, key=key)
    assert recorder.recorded == 50
    assert recorder.dropped == 0


def test_no_properties_are_recorded_when_switched_off():
    recorder = TraceRecorder("sluice", properties=False)
    recorder.record_enqueue(START, [message(1, region="eu")], TOPIC)
    assert events(recorder) == [row(START, ENQUEUE, 1, TOPIC, TOPIC)]


def test_a_message_id_may_be_any_text():
    recorder = TraceRecorder("sluice")
    ids = ["", "two\nlines", "é", "plain"]
    for id in ids:
        recorder.record_one(ACK, START, Message(id, b"", b""), EU, EU, None, None)
    assert [event["msg_id"] for event in events(recorder)] == ids


def test_beyond_the_limit_the_oldest_are_dropped_and_counted(monkeypatch):
    monkeypatch.setattr(recorder_module, "BATCH_EVENTS", 10)
    monkeypatch.setattr(recorder_module, "MAX_PENDING", 100)
    recorder = TraceRecorder("sluice")
    for number in range(250):
        recorder.record_enqueue(START + number, [message(number, n=str(number))], TOPIC)
        if number % 2:
            recorder.record(FORWARD, START + number, [message(number)], [EU, US], TOPIC)
    assert recorder.pending <= 200
    found = events(recorder)
    assert recorder.recorded == 500
    assert recorder.dropped == 500 - len(found) > 0
    oldest = min(event["ts"] for event in found)
    assert oldest > moment(START + 100)
    assert max(event["ts"] for event in found) == moment(START + 249)
    properties = [(event["msg_id"], event["pn"]) for event in found if event["kind"] == "enqueue"]
    assert properties == [(id, [("n", float(id.rpartition(":")[2]))]) for id, _ in properties]


def test_a_batch_carries_the_schema_and_its_version():
    recorder = TraceRecorder("sluice")
    recorder.record_one(ACK, START, message(1), EU, EU, None, None)
    schema = decode(recorder.take_encoded()[0]).schema
    assert schema.equals(SCHEMA)
    assert schema.metadata[VERSION_KEY] == str(VERSION).encode()


def test_nothing_noted_gives_nothing_to_take():
    assert TraceRecorder("sluice").take_encoded() is None


def test_what_is_no_batch_is_refused_with_the_reason():
    good = a_batch()
    for bad in (b"", b"SLT2", b"nonsense", good[:-3], good[:8], good[:4] + b"\xff\xff\xff\xff" + good[8:]):
        with pytest.raises(ValueError, match="not a batch of trace events"):
            decode(bad)


def test_a_batch_of_version_1_is_read_as_one_of_today():
    today = decode(a_batch())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, (first := today.drop_columns("weight")).schema) as writer:
        writer.write_table(first)
    assert decode(sink.getvalue().to_pybytes()).equals(today)


def a_batch() -> bytes:
    recorder = TraceRecorder("sluice")
    recorder.record_enqueue(START, [message(1, region="eu")], TOPIC)
    recorder.record(FORWARD, START, [message(1)], [EU, US], TOPIC)
    return recorder.take_encoded()[0]


def test_what_depths_count_already_stays_before_them_and_all_else_after():
    recorder = TraceRecorder("sluice")
    recorder.since_us = START + 5
    recorder.record(FORWARD, START, [message(1)], [EU], TOPIC)
    recorder.record(FORWARD, START, [message(2)], [EU], TOPIC, in_depths=True)
    moments = decode(recorder.take_encoded()[0])["ts"].cast(pa.int64()).to_pylist()
    assert moments == [START + 5, START]


def test_where_recording_is_off_the_same_calls_record_nothing():
    recorder = NullTraceRecorder("sluice")
    recorder.record_enqueue(START, [message(1)], TOPIC, "client")
    recorder.record_one(FORWARD, START, message(1), EU, TOPIC, None, None)
    recorder.record(FORWARD, START, [message(1)], [EU], TOPIC, None, None, in_depths=True)
    assert recorder.take_encoded() is None


@given(
    st.lists(
        st.tuples(st.sampled_from([FORWARD, ACK, ENQUEUE]), st.lists(st.integers(1, 3), max_size=3), st.integers(0, 2)),
        max_size=15,
    ),
    st.integers(1, 9),
    st.booleans(),
)
def test_the_same_messages_in_several_runs_are_noted_once_and_come_back_in_each(runs, limit, is_sampled):
    recorder, expected = TraceRecorder("sluice"), []
    for at, (kind, numbers, copies) in enumerate(runs):
        messages = [message(number, at=str(at)) for number in numbers]
        if kind == ENQUEUE:
            recorder.record_enqueue(START + at, messages, TOPIC)
            copies = 1
        else:
            recorder.record(kind, START + at, messages, [EU, US][:copies], TOPIC)
        places = [TOPIC] if kind == ENQUEUE else [EU, US][:copies]
        ps = {"ps": [("at", str(at))], "pn": [("at", float(at))]} if kind == ENQUEUE else {}
        expected += [row(START + at, kind, number, place, TOPIC, **ps) for number in numbers for place in places]
    found = []
    rule = SamplingRule(2) if is_sampled else SamplingRule()
    while batch := recorder.take_batch(limit):
        found += decode(sample_batch(batch, lambda _: rule).encode()).drop_columns("weight").to_pylist()
    for each in expected:
        del each["weight"]
    assert found == [each for each in expected if rule.includes(each["msg_id"])]


def test_a_message_for_many_consumers_is_noted_once():
    recorder, messages = TraceRecorder("sluice"), [message(number) for number in range(100)]
    for consumer in range(50):
        recorder.record(DISPATCH, START, messages, [TOPIC], TOPIC, f"c{consumer}")
        recorder.record(ACK, START, messages, [TOPIC], TOPIC, f"c{consumer}")
    batch = recorder.take_batch()
    assert (len(batch.facts), batch.count) == (100, 10_000)


def test_a_batch_is_packed_in_parts_of_bounded_size_between_which_others_work():
    recorder = TraceRecorder("sluice")
    for number in range(3_000):
        recorder.record_enqueue(START, [message(number)], TOPIC)
        recorder.record(FORWARD, START, [message(number)], [EU], TOPIC)
    batch, compressor = recorder.take_batch(), encoding.BatchCompressor()
    parts = list(batch.packed_parts())
    assert len(parts) >= len(batch.runs) / encoding.STEP_VALUES + len(batch.heads) / encoding.STEP_HEADS
    for part in parts:
        compressor.add(part)
    encoded = compressor.finish()
    assert encoded == batch.encode()
    assert decode(encoded).num_rows == 6_000


def test_nodes_in_several_threads_encode_their_batches_at_once():
    recorder = TraceRecorder("sluice")
    for number in range(2_000):
        recorder.record_enqueue(START, [message(number, order=str(number) * 20)], TOPIC)
    batch = recorder.take_batch()
    expected = batch.encode()
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: batch.encode(), range(200))) == {expected}


def test_a_recorder_that_discards_takes_what_one_that_records_takes():
    recorder = NullTraceRecorder("sluice")
    recorder.record(FORWARD, START, [message(1)], [EU], TOPIC, consumer="c", reason="r", in_depths=True)
    recorder.record_one(
        kind=ACK, ts_us=START, message=message(1), destination=EU, original=TOPIC, consumer="c", reason="r"
    )
    recorder.record_enqueue(START, [message(1)], TOPIC, producer="p")
    assert recorder.take_batch() is None
