"""Compare the oldest message over time, found by Spark, with copies that are followed one by one."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.model.lag_series import BEFORE, oldest_of_slots

pytestmark = pytest.mark.spark

SLOT, SLOTS, FIRST = 10, 37, 1_760_000_400
START_US, SPAN_US = FIRST * 1_000_000, SLOT * SLOTS * 1_000_000
ENDS = [START_US + (number + 1) * SLOT * 1_000_000 for number in range(SLOTS)]
LOGS = ["queue://fifo", "queue://priorities", "subscription://c:s", "queue://slow"]


def follow(rng: random.Random, copies: int) -> tuple[list[dict], list[tuple[str, int, list[tuple[int, int]]]]]:
    """The events of random copies, and of each its log, its birth and when it waited."""
    events, truth = [], []
    for number in range(copies):
        log = rng.choice(LOGS)
        stored = START_US + rng.randrange(-SPAN_US, SPAN_US)
        born = stored - rng.choice([0, 0, 1_000, 40_000_000])
        message = {"msg_id": f"ID:{number}", "destination": log, "broker": "b", "born": born, "weight": 1}
        moments, stays = (
            sorted({stored, *(stored + rng.randrange(1, SPAN_US // 4) for _ in range(rng.randrange(5)))}),
            [],
        )
        for index, moment in enumerate(moments):
            kind = ("forward" if index == 0 else "return") if index % 2 == 0 else rng.choice(["ack", "delay", "move"])
            if START_US <= moment < START_US + SPAN_US:
                events.append({**message, "ts": moment, "kind": kind, "reason": None})
            if index % 2 == 0:
                stays.append((moment, moments[index + 1] if index + 1 < len(moments) else 1 << 62))
        truth.append((log, born, stays))
    rng.shuffle(events)
    return events, truth


def is_seen(stays: list[tuple[int, int]]) -> bool:
    """Whether any event of a copy is in the time range."""
    return any(START_US <= moment < START_US + SPAN_US for stay in stays for moment in stay)


def frame(spark, events):
    moment = pa.timestamp("us", "UTC")
    types = {"msg_id": pa.string(), "destination": pa.string(), "broker": pa.string(), "born": moment,
             "weight": pa.int32(), "ts": moment, "kind": pa.string(), "reason": pa.string()}  # fmt: skip
    return spark.createDataFrame(pa.Table.from_pylist(events, pa.schema(list(types.items()))))


@pytest.mark.long
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rng=st.randoms(use_true_random=True))
def test_the_oldest_message_is_that_of_copies_followed_one_by_one(spark, rng):
    from analytics.transforms import schemas
    from analytics.transforms.lag.oldest_messages import oldest_messages

    events, truth = follow(rng, 150)
    rows = oldest_messages(frame(spark, events), SLOT, FIRST, SLOTS).toArrow()
    assert rows.schema.names == schemas.OLDEST.fieldNames()
    found = rows.set_column(4, "born", rows["born"].cast(pa.int64())).to_pylist()
    for log in LOGS:
        mine = [each for each in found if each["destination"] == log]
        blocks = [(each["level"], each["start"], each["born"]) for each in mine if each["level"] != BEFORE]
        here = [(born, stays) for at, born, stays in truth if at == log and is_seen(stays)]
        waiting = [[born for born, stays in here if any(begin < end <= gone for begin, gone in stays)] for end in ENDS]
        assert oldest_of_slots(SLOTS, blocks) == [min(each, default=None) for each in waiting]
        before = sum(any(begin < START_US <= gone for begin, gone in stays) for _, stays in here)
        assert sum(each["messages"] for each in mine) == before
        assert len(mine) <= 2 * SLOTS * SLOTS.bit_length()


def test_what_arrives_is_served_and_acknowledged_is_counted_by_weight_and_age(spark):
    from analytics.transforms import schemas
    from analytics.transforms.lag.service_counts import service

    def event(kind, second, age, weight=1, reason=None):
        ts = START_US + second * 1_000_000
        return {"msg_id": kind, "destination": "queue://q", "broker": "b", "born": ts - age * 1_000_000,
                "weight": weight, "ts": ts, "kind": kind, "reason": reason}  # fmt: skip

    events = [
        event("forward", 1, 0, 3), event("return", 2, 0), event("ack", 3, 4, 3), event("ack", 4, -1),
        event("move", 5, 1), event("dead_letter", 12, 5), event("drop", 12, 0, reason="the queue is full"),
        event("dispatch", 13, 1),
    ]  # fmt: skip
    rows = service(frame(spark, events), SLOT, FIRST).toArrow()
    assert rows.schema.names == schemas.SERVICE.fieldNames()
    counts = {row.pop("number"): Counter(row) for row in rows.drop_columns(["broker", "destination"]).to_pylist()}
    assert counts == {
        0: Counter(arrived=4, served=4, acked=4, timed=3, age_us=12e6),
        1: Counter(arrived=0, served=1, acked=0, timed=0, age_us=0.0),
    }
