"""Test that sampling is by message: all its events are recorded, or none."""

import pytest

from brokerapp.tracing.decoding import decode
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.sampling import EVERYTHING, SamplingRule, sample_batch, sampling_rule
from brokerapp.tracing.schema import ACK, DISPATCH, FORWARD
from tests.brokerapp.tracing.test_recorder import EU, START, TOPIC, US, message

MESSAGES = 400


def recorded(choices: dict[str, SamplingRule], messages: int = MESSAGES) -> list[dict]:
    """What is recorded of messages with five events each, in batches of any size, and of depths."""
    recorder = TraceRecorder("sluice")
    for number in range(0, messages, 2):
        two = [message(number, region="eu", amount="7"), message(number + 1, region="eu", amount="7")]
        recorder.record_enqueue(START, two, TOPIC)
        recorder.record(FORWARD, START, two, [EU, US], TOPIC)
        recorder.record(DISPATCH, START + 1, two, [EU], TOPIC, "c")
        recorder.record(ACK, START + 2, two, [EU], TOPIC, "c")
    DepthRecorder(recorder).record(START + 3, {EU: messages})
    rows = []
    while (batch := recorder.take_batch(97)) is not None:
        batch = sample_batch(batch, lambda original: choices.get(original, EVERYTHING))
        table = decode(batch.encode())
        assert table.num_rows == batch.count
        rows += table.to_pylist()
    return rows


def test_without_a_choice_everything_is_recorded():
    rows = recorded({})
    assert len(rows) == MESSAGES * 5 + 1
    assert {row["weight"] for row in rows} == {1}


def test_of_a_destination_that_is_off_nothing_is_recorded_but_its_depths():
    assert [(row["kind"], row["size"]) for row in recorded({TOPIC: SamplingRule(0)})] == [("depth", MESSAGES)]


@pytest.mark.parametrize("one_in", [2, 10])
def test_of_a_message_that_is_sampled_everything_is_recorded_and_stands_for_so_many(one_in):
    rows = [row for row in recorded({TOPIC: SamplingRule(one_in)}) if row["kind"] != "depth"]
    by_message: dict[str, list[str]] = {}
    for row in rows:
        by_message.setdefault(row["msg_id"], []).append(row["kind"])
    assert {tuple(kinds) for kinds in by_message.values()} == {("enqueue", "forward", "forward", "dispatch", "ack")}
    assert {row["weight"] for row in rows} == {one_in}
    assert sum(row["weight"] for row in rows if row["kind"] == "enqueue") == pytest.approx(MESSAGES, rel=0.35)
    fewer = {row["msg_id"] for row in recorded({TOPIC: SamplingRule(one_in * 2)}) if row["kind"] != "depth"}
    assert fewer < set(by_message)


def test_depths_are_counted_whole_where_messages_are_sampled():
    [depth] = [row for row in recorded({TOPIC: SamplingRule(10), EU: SamplingRule(10)}) if row["kind"] == "depth"]
    assert (depth["weight"], depth["size"]) == (1, MESSAGES)


@pytest.mark.parametrize(
    ("properties", "kept"),
    [(None, [("region", "eu"), ("amount", "7")]), ("amount", [("amount", "7")]), ("region, other", [("region", "eu")]),
     ("", [])],
)  # fmt: skip
def test_only_the_properties_that_are_named_are_recorded(properties, kept):
    rows = recorded({TOPIC: sampling_rule(None, properties)}, messages=4)
    assert [row["ps"] for row in rows if row["kind"] == "enqueue"] == [kept] * 4


def test_the_trace_context_is_recorded_whatever_properties_are_named():
    recorder = TraceRecorder("sluice")
    sent = message(1, traceparent="00-1", tracestate="a=1", baggage="b=2", region="eu")
    recorder.record_enqueue(START, [sent], TOPIC)
    batch = sample_batch(recorder.take_batch(), lambda _: sampling_rule(None, ""))
    [row] = decode(batch.encode()).to_pylist()
    assert row["ps"] == [("traceparent", "00-1"), ("tracestate", "a=1")]


@pytest.mark.parametrize(
    ("said", "meant"),
    [((None, None), EVERYTHING), ((0, None), SamplingRule(0)), ((5, "a,b"), SamplingRule(5, frozenset("ab")))],
)
def test_a_policy_says_what_is_chosen(said, meant):
    assert sampling_rule(*said) == meant
