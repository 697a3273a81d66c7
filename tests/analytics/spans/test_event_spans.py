"""Test the spans of trace events: names, attributes, times, parents, links and sampling."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from analytics.spans.event_spans import EventSpans
from analytics.spans.traced_messages import TracedMessages, number_from, producer_context
from brokerapp.model.message import Message
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DEAD_LETTER, DISPATCH, DROP, FORWARD, KINDS, MOVE, REDELIVER, REMOVE, RETURN

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"
QUEUE, TOPIC, BORN = "queue://orders", "topic://prices", 1_760_000_400_000_000
SUBSCRIPTION = "subscription://desk:prices"


def message(id="ID:1", born=BORN, **properties):
    lines = "".join(f"{name}:{value}\n" for name, value in properties.items())
    return Message(id, f"message-id:{id}\n{lines}".encode(), b"x" * 10, True, born_us=born)


class Recorded:
    """Records events as a node does."""

    def __init__(self):
        self._recorder = TraceRecorder("north")

    def enqueue(self, sent, at=BORN, to=QUEUE, by="shop"):
        self._recorder.record_enqueue(at, [sent], to, by)
        return self

    def note(self, kind, sent, at, place=QUEUE, original=QUEUE, by=None, reason=None):
        self._recorder.record_one(kind, at, sent, place, original, by, reason)
        return self

    def tables(self):
        while batch := self._recorder.take_encoded():
            yield decode(batch[0])


@pytest.fixture
def recorded():
    return Recorded()


def spans_of(recorded, sampler=None, messages=None):
    if messages is None:
        messages = TracedMessages(sampler or ParentBased(ALWAYS_ON))
    made = EventSpans("north", Resource.create({}), messages)
    return [span for table in recorded.tables() for span in made.of(table)]


def names(spans):
    return [span.name for span in spans]


def test_the_way_of_a_message_is_publish_receive_and_ack_in_the_producers_trace(recorded):
    sent = message(traceparent=SAMPLED, tracestate="vendor=1")
    recorded.enqueue(sent, BORN + 100).note(FORWARD, sent, BORN + 110)
    recorded.note(DISPATCH, sent, BORN + 500, by="billing").note(ACK, sent, BORN + 900, by="billing")
    publish, receive, ack = spans_of(recorded)
    assert names([publish, receive, ack]) == ["publish orders", "receive orders", "ack orders"]
    assert [each.kind for each in (publish, receive, ack)] == [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT]
    assert {each.context.trace_id for each in (publish, receive, ack)} == {int(TRACE, 16)}
    assert publish.parent.span_id == int(SPAN, 16)
    assert publish.context.trace_state.get("vendor") == "1"
    assert receive.parent.span_id == publish.context.span_id
    assert ack.parent.span_id == receive.context.span_id
    assert [len(each.links) for each in (publish, receive, ack)] == [0, 1, 1]
    assert receive.links[0].context.span_id == int(SPAN, 16)
    times = [((each.start_time - BORN * 1000) / 1000, (each.end_time - BORN * 1000) / 1000)
             for each in (publish, receive, ack)]  # fmt: skip
    assert times == [(0, 100), (110, 500), (500, 900)]


def test_attributes_are_those_of_the_conventions_and_no_property_is_among_them(recorded):
    sent = message(traceparent=SAMPLED, card="4111111111111111")
    recorded.enqueue(sent).note(DISPATCH, sent, BORN + 5, by="billing")
    publish, receive = spans_of(recorded)
    assert publish.attributes == {
        "messaging.system": "sluice", "messaging.operation.name": "publish", "messaging.operation.type": "send",
        "messaging.destination.name": "orders", "messaging.message.id": "ID:1", "messaging.message.body.size": 10,
        "messaging.client.id": "shop", "sluice.destination.kind": "queue",
    }  # fmt: skip
    assert receive.attributes["messaging.client.id"] == "billing"
    assert (receive.attributes["messaging.operation.type"], receive.attributes["messaging.operation.name"]) == (
        "receive", "receive",
    )  # fmt: skip
    assert "4111" not in publish.to_json() + receive.to_json()


@pytest.mark.parametrize(
    ("kind", "reason", "name", "status", "error"),
    [
        (REDELIVER, "consumer gone", "redeliver", StatusCode.UNSET, "consumer_gone"),
        (REDELIVER, "rejected by c (NACK): again in 20 ms", "redeliver", StatusCode.UNSET, "rejected"),
        (DEAD_LETTER, "rejected by c (card 4111 is bad)", "dead_letter", StatusCode.ERROR, "rejected"),
        (DEAD_LETTER, "expired", "dead_letter", StatusCode.ERROR, "expired"),
        (DROP, "discarded for a slow subscriber", "drop", StatusCode.ERROR, "slow_consumer"),
        (DROP, "something else: card 4111", "drop", StatusCode.ERROR, "_OTHER"),
        (MOVE, "moved by an operator", "move", StatusCode.UNSET, None),
        (REMOVE, "removed by an operator", "remove", StatusCode.UNSET, None),
    ],
)
def test_each_end_of_a_copy_settles_it_and_the_text_of_clients_stays_here(
    recorded, kind, reason, name, status, error
):  # fmt: skip
    sent = message()
    recorded.enqueue(sent).note(DISPATCH, sent, BORN + 5, by="c").note(kind, sent, BORN + 9, by="c", reason=reason)
    span = spans_of(recorded)[-1]
    assert (span.name, span.status.status_code) == (f"{name} orders", status)
    assert (span.attributes["messaging.operation.type"], span.attributes.get("error.type")) == ("settle", error)
    assert "4111" not in span.to_json()


def test_what_is_rolled_back_was_published_in_vain(recorded):
    sent = message()
    recorded.note(KINDS.index("rollback"), sent, BORN + 50, by="shop", reason="aborted by the client")
    [span] = spans_of(recorded)
    assert (span.name, span.status.status_code, span.end_time) == (
        "publish orders", StatusCode.ERROR, (BORN + 50) * 1000,
    )  # fmt: skip


def test_each_delivery_begins_when_the_copy_was_ready_again(recorded):
    sent = message()
    recorded.enqueue(sent).note(FORWARD, sent, BORN + 1)
    recorded.note(DISPATCH, sent, BORN + 10, by="c").note(REDELIVER, sent, BORN + 20, by="c", reason="consumer gone")
    recorded.note(DISPATCH, sent, BORN + 30, by="d").note(REDELIVER, sent, BORN + 40, by="d", reason="rejected by d")
    recorded.note(RETURN, sent, BORN + 60).note(DISPATCH, sent, BORN + 70, by="d").note(ACK, sent, BORN + 80, by="d")
    spans = spans_of(recorded)
    received = [(each.start_time // 1000, each.end_time // 1000) for each in spans if each.name == "receive orders"]
    assert received == [(BORN + 1, BORN + 10), (BORN + 20, BORN + 30), (BORN + 60, BORN + 70)]
    assert spans[-1].parent.span_id == spans[-2].context.span_id
    assert len({each.context.span_id for each in spans}) == len(spans)


def test_copies_of_a_topic_name_the_topic_and_the_subscription(recorded):
    sent = message()
    recorded.enqueue(sent, to=TOPIC).note(FORWARD, sent, BORN + 1, SUBSCRIPTION, TOPIC)
    recorded.note(DISPATCH, sent, BORN + 2, SUBSCRIPTION, TOPIC, "desk")
    span = spans_of(recorded)[-1]
    assert span.name == "receive prices"
    assert span.attributes["messaging.destination.name"] == "prices"
    assert span.attributes["messaging.destination.subscription.name"] == "desk:prices"
    assert span.attributes["messaging.destination_publish.name"] == "prices"


def test_names_of_spans_have_no_names_of_temporary_destinations(recorded):
    sent = message()
    recorded.enqueue(sent, to="temp-queue://sluice-1:7:1")
    [span] = spans_of(recorded)
    assert (span.name, span.attributes["messaging.destination.temporary"]) == ("publish (temporary)", True)


def test_what_the_producer_did_not_sample_has_no_spans(recorded):
    chosen, other = message("ID:1", traceparent=SAMPLED), message("ID:2", traceparent=UNSAMPLED)
    for each in (chosen, other):
        recorded.enqueue(each).note(DISPATCH, each, BORN + 5, by="c").note(ACK, each, BORN + 9, by="c")
    assert {each.attributes["messaging.message.id"] for each in spans_of(recorded)} == {"ID:1"}


def test_a_ratio_selects_whole_messages_the_same_ones_in_every_process():
    chosen = []
    for _ in range(2):
        recorded = Recorded()
        for number in range(400):
            sent = message(f"ID:{number}")
            recorded.enqueue(sent).note(DISPATCH, sent, BORN + 5, by="c").note(ACK, sent, BORN + 9, by="c")
        spans = spans_of(recorded, ParentBased(TraceIdRatioBased(0.25)))
        by_message: dict[str, list[str]] = {}
        for each in spans:
            by_message.setdefault(each.attributes["messaging.message.id"], []).append(each.name)
        assert {tuple(each) for each in by_message.values()} == {("publish orders", "receive orders", "ack orders")}
        chosen.append(set(by_message))
    assert chosen[0] == chosen[1]
    assert 60 < len(chosen[0]) < 140  # 100 of 400, within five standard deviations


def test_the_spans_of_a_message_without_context_share_a_trace_that_follows_from_its_id(recorded):
    sent = message("ID:7")
    recorded.enqueue(sent).note(DISPATCH, sent, BORN + 5, by="c")
    publish, receive = spans_of(recorded)
    assert publish.parent is None
    assert publish.context.trace_id == receive.context.trace_id == number_from("trace", "ID:7", bits=128)


def test_a_message_that_is_not_remembered_has_spans_that_say_so(recorded):
    sent = message("ID:7")
    recorded.note(DISPATCH, sent, BORN + 5, by="c").note(ACK, sent, BORN + 9, by="c")
    messages = TracedMessages(ParentBased(ALWAYS_ON))
    receive, ack = spans_of(recorded, messages=messages)
    assert receive.attributes["sluice.context.known"] is ack.attributes["sluice.context.known"] is False
    assert (receive.parent, ack.parent.span_id, messages.unknown) == (None, receive.context.span_id, 1)
    assert (receive.start_time, receive.end_time) == (BORN * 1000, (BORN + 5) * 1000)


def test_no_more_messages_are_remembered_than_the_limit_and_none_for_longer():
    messages = TracedMessages(ParentBased(ALWAYS_ON), limit=3)
    for number in range(5):
        messages.enqueued(f"ID:{number}", BORN + number, None, None)
    messages.get("ID:2", BORN + 9)  # it is the last seen now
    messages.enqueued("ID:5", BORN + 10, None, None)
    assert (len(messages), messages.unknown) == (3, 0)
    messages.get("ID:3", BORN + 11)
    assert messages.unknown == 1
    messages.forget_before(BORN + 10)
    assert len(messages) == 2


def test_what_is_remembered_survives_a_restart(recorded, tmp_path):
    sent = message(traceparent=SAMPLED, tracestate="vendor=1")
    recorded.enqueue(sent).note(FORWARD, sent, BORN + 1).note(DISPATCH, sent, BORN + 5, by="c")
    before = TracedMessages(ParentBased(ALWAYS_ON))
    receive = spans_of(recorded, messages=before)[-1]
    before.save(tmp_path / "messages")
    after = TracedMessages(ParentBased(ALWAYS_ON))
    after.restore(tmp_path / "messages")
    [ack] = spans_of(recorded.note(ACK, sent, BORN + 9, by="c"), messages=after)
    assert (ack.parent.span_id, ack.context.trace_id) == (receive.context.span_id, int(TRACE, 16))
    assert (ack.links[0].context.trace_state.get("vendor"), after.unknown) == ("1", 0)
    assert not (tmp_path / "messages").exists()


@given(
    st.text(max_size=80) | st.from_regex(r"\A[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\Z"), st.text(max_size=40)
)
def test_any_text_is_a_context_or_none(traceparent, tracestate):
    found = producer_context(traceparent, tracestate)
    assert found is None or f"{found.trace_id:032x}-{found.span_id:016x}" in traceparent


def test_an_empty_batch_has_no_spans():
    made = EventSpans("north", Resource.create({}), TracedMessages(ParentBased(ALWAYS_ON)))
    recorded = Recorded()
    recorded.enqueue(message())
    [table] = recorded.tables()
    assert made.of(table.slice(0, 0)) == []
    assert isinstance(table, pa.Table)
