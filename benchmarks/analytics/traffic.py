"""Traffic as brokers record it, made up from a seed as columns: queues, a virtual topic, composites with filtered legs,
pools of consumers (one of them slow, one stuck, one idle), redeliveries, dead letters, expiry, drops, duplicates, a
second broker behind a bridge, destinations that nobody reads, and notes of depths.

The traffic of a day is repeated, thinner, a week earlier, so that weeks can be compared.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.compaction import MergedFile
from analytics.archive.data_files import position_in, to_archive_schema
from analytics.requests.request import TimeWindow
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.system import atomic_files
from brokerapp.tracing.arrow_schema import MOMENT, SCHEMA
from brokerapp.tracing.schema import ALL, CHANGED, KINDS

SECOND_US = 1_000_000
MINUTE_US, HOUR_US, WEEK_US = 60 * SECOND_US, 3600 * SECOND_US, 7 * 86400 * SECOND_US
#: A Thursday, 08:00 UTC.
START_US = 1_760_601_600_000_000
BROKER, SECOND_BROKER = "sluice", "sluice-east"
TOPIC = "topic://VirtualTopic.Orders"
ORDERS_IN = "queue://Orders.In"
PRICES = "topic://Prices"
DEAD_LETTERS = "queue://ActiveMQ.DLQ"
FORGOTTEN, UNHEARD = "queue://Forgotten", "topic://Unheard"
WORK = tuple(f"queue://Work.{number}" for number in range(12))
REGIONS = ("eu", "us", "apac")
#: Part of a message's traffic that a week earlier has of today's.
WEEK_EARLIER = 0.6
#: Parts of copies to which this happens.
FAILING, DEAD, EXPIRING, DROPPED, DUPLICATED, BRIDGED = 0.03, 0.4, 0.004, 0.002, 0.002, 0.05
MOST_REDELIVERIES = 6
#: One message in so many is sent in a transaction that is rolled back.
ROLLED_BACK = 50
#: Producers of each destination; the first sends most.
SENDERS = 2

_KIND = {name: code for code, name in enumerate(KINDS)}
EVENTS_A_MESSAGE = 5.4  # about
#: Events of a file that the archiver appended, before compaction.
APPENDED = 50_000


@dataclass(frozen=True, slots=True)
class Pool:
    """Who consumes a queue: how many, how unevenly (0: alike), and how long they take, in seconds."""

    consumers: int
    seconds: float
    uneven: float = 0.0
    stuck: bool = False  #: the first one stops to acknowledge at half time
    idle: bool = False  #: the first one gets nothing from half time on


POOLS: dict[str, Pool] = {
    "queue://Consumer.Billing.VirtualTopic.Orders": Pool(2, 0.02),
    "queue://Consumer.Shipping.VirtualTopic.Orders": Pool(3, 0.05, 0.8),
    "queue://Consumer.Audit.VirtualTopic.Orders": Pool(1, 120.0),
    "queue://Orders.Eu": Pool(2, 0.01),
    "queue://Orders.Us": Pool(1, 0.01),
    "queue://Prices.Kept": Pool(1, 0.002),
    **{name: Pool(1 + number % 4, 0.004 * 2**number, number / 10) for number, name in enumerate(WORK[:10])},
    WORK[10]: Pool(3, 0.5, stuck=True),
    WORK[11]: Pool(3, 0.5, idle=True),
}
#: Where messages are sent to, how many of them, and where copies go; a leg with regions takes only messages of these.
ROUTES: dict[str, tuple[float, tuple[tuple[str, tuple[str, ...] | None], ...]]] = {
    TOPIC: (0.30, tuple((name, None) for name in list(POOLS)[:3])),
    ORDERS_IN: (0.12, (("queue://Orders.Eu", ("eu",)), ("queue://Orders.Us", ("us",)), ("queue://Orders.Moon", ()))),
    PRICES: (0.05, (("queue://Prices.Kept", None),)),
    FORGOTTEN: (0.01, ((FORGOTTEN, None),)),
    UNHEARD: (0.01, ()),
    **{name: (0.51 / len(WORK), ((name, None),)) for name in WORK},
}
CAUSES = (
    "java.lang.IllegalStateException: card {n} of customer 'C-{n}' expired",
    'ConstraintViolation: order "{n}" exists already (key ID:sluice-1:{n})',
    "timeout after 30000 ms calling 10.0.0.{m}:8443",
)
#: The definitions this traffic went through; some of them never match.
DEFINITIONS = Definitions(
    7,
    (
        VirtualTopic("VirtualTopic.>"),
        VirtualTopic("Unused.>"),
        CompositeDestination(
            Destination.queue("Orders.In"),
            (
                ForwardTarget(Destination.queue("Orders.Eu"), "region = 'eu'"),
                ForwardTarget(Destination.queue("Orders.Us"), "region = 'us'"),
                ForwardTarget(Destination.queue("Orders.Moon"), "region = 'moon'"),
            ),
        ),
        CompositeDestination(
            Destination.topic("Prices"), (ForwardTarget(Destination.queue("Prices.Kept")),), forward_only=False
        ),
        CompositeDestination(Destination.queue("Never.Sent"), (ForwardTarget(Destination.queue("Never.Reached")),)),
    ),
)


@dataclass(slots=True)
class Events:
    """Columns of events under way; texts as codes into their own lists."""

    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def name(self, text: str) -> int:
        """The code of a destination."""
        if text not in self.codes:
            self.codes[text] = len(self.names)
            self.names.append(text)
        return self.codes[text]

    def add(self, kind: str, ts: np.ndarray, message: np.ndarray, destination: int, original: int, **rest) -> None:
        """The same kind of event at one destination, of these messages at these times."""
        values = {
            "kind": _KIND[kind], "ts": ts, "message": message, "destination": destination, "original": original,
            "consumer": -1, "reason": -1, "broker": 0, "depth": -1,
        } | rest  # fmt: skip
        for name, value in values.items():
            self.columns.setdefault(name, []).append(np.broadcast_to(np.asarray(value, np.int64), len(message)))

    def taken(self) -> dict[str, np.ndarray]:
        """All columns, by time."""
        joined = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        order = np.lexsort((joined["kind"], joined["ts"]))
        return {name: column[order] for name, column in joined.items()}


def window_of(hours: int) -> TimeWindow:
    """The traffic of today."""
    return TimeWindow(START_US, START_US + hours * HOUR_US)


def generate(folder: Path, events: int, hours: int = 3, seed: int = 7) -> int:
    """Fill an archive with about so many events, a part of them a week earlier; how many there are."""
    dice, written = np.random.default_rng(seed), 0
    today = events / (1 + WEEK_EARLIER)
    for start, part in ((START_US - WEEK_US, today * WEEK_EARLIER), (START_US, today)):
        span = hours * HOUR_US
        chunks = max(1, round(part / 2_000_000))  # bounds memory; each is a stretch of its own, so hours stay apart
        for number in range(chunks):
            first = start + number * span // chunks
            made = stretch(dice, first, span // chunks, round(part / chunks / EVENTS_A_MESSAGE), start + span)
            written += write(folder, made, f"{start // 1000}-{number}")
    commit(folder, f"{START_US // 1000}-{chunks}", written)
    return written


def commit(folder: Path, offset: str, events: int) -> None:
    """Write the commit records of both brokers."""
    for broker in (BROKER, SECOND_BROKER):
        record = json.dumps(asdict(ArchiveCommit(offset=offset, events=events))).encode()
        atomic_files.replace(BrokerArchive(folder, broker).folder / "_commit.json", record)


def stretch(dice: np.random.Generator, start: int, span: int, count: int, end: int) -> Stretch:
    """Make the traffic of a stretch of time."""
    made = Stretch(dice, start, span, count, end)
    for original, (share, legs) in ROUTES.items():
        made.send(original, share, legs)
    made.note_depths()
    return made


class Stretch:
    """The traffic of one stretch of time. What would happen after `end` does not."""

    def __init__(self, dice: np.random.Generator, start: int, span: int, count: int, end: int) -> None:
        self.dice, self.start, self.span, self.end, self.events = dice, start, span, end, Events()
        self.first = start // 1000  # numbers of messages differ between stretches
        self.born = start + self._wave(count)
        self.size = np.minimum(dice.lognormal(6, 1.2, count), 1 << 20).astype(np.int64)
        self.region = dice.choice(len(REGIONS), count, p=(0.5, 0.3, 0.2))
        self._next = 0

    def _wave(self, count: int) -> np.ndarray:
        """Moments that come in a wave, sorted."""
        even = np.sort(self.dice.random(count))
        return ((even + 0.06 * np.sin(2 * np.pi * even)) * self.span).clip(0, self.span - 1).astype(np.int64)

    def send(self, original: str, share: float, legs: tuple) -> None:
        """A part of the messages goes to this destination, and on to its legs."""
        phase = np.arange(len(self.born)) * 0.6180339887 % 1  # spread evenly, each message in one share only
        chosen = np.flatnonzero((phase >= self._next) & (phase < self._next + share))
        self._next += share
        sent_to = self.events.name(original)
        first = len(self.events.consumers)
        self.events.consumers += [f"{original.partition('://')[2]}-sender-{number}" for number in range(SENDERS)]
        by = first + (chosen % 7 == 0)
        undone = np.arange(len(chosen)) % ROLLED_BACK == ROLLED_BACK - 1
        lost = chosen[undone]
        self._note("rollback", self.born[lost] + 1000, lost, sent_to, sent_to, consumer=by[undone])
        chosen, by = chosen[~undone], by[~undone]
        self._note("enqueue", self.born[chosen], chosen, sent_to, sent_to, consumer=by)
        for name, regions in legs:
            reached = chosen
            if regions is not None:
                codes = [REGIONS.index(each) for each in regions]
                reached = chosen[np.isin(self.region[chosen], codes)]
            self.deliver(name, sent_to, reached)

    def deliver(self, name: str, sent_to: int, copies: np.ndarray) -> None:
        """Copies come to a queue and what its consumers do with them."""
        log, dice = self.events.name(name), self.dice
        fate = dice.random(len(copies))
        dropped = fate < DROPPED
        self._note("drop", self.born[copies[dropped]], copies[dropped], log, sent_to, reason=0)
        copies, fate = copies[~dropped], fate[~dropped]
        self._note("forward", self.born[copies], copies, log, sent_to)
        expiring = fate > 1 - EXPIRING
        late = copies[expiring]
        for kind in ("expire", "drop"):
            self._note(kind, self.born[late] + 30 * SECOND_US, late, log, sent_to, reason=1)
        if name in POOLS:
            self._consume(POOLS[name], name, log, sent_to, copies[~expiring])

    def _consume(self, pool: Pool, name: str, log: int, sent_to: int, copies: np.ndarray) -> None:
        dice, count = self.dice, len(copies)
        weights = np.arange(1, pool.consumers + 1.0) ** -pool.uneven
        who = dice.choice(pool.consumers, count, p=weights / weights.sum())
        given = self.born[copies] + dice.lognormal(8, 1.5, count).astype(np.int64)
        done = given + (dice.lognormal(0, 0.7, count) * pool.seconds * SECOND_US).astype(np.int64) + 1
        late = given > self.start + self.span // 2
        if pool.idle:
            who = np.where(late & (who == 0), 1, who)
        first = len(self.events.consumers)
        short = name.partition("://")[2]
        self.events.consumers += [f"{short}-{number}" for number in range(pool.consumers)]
        by = who + first
        for number in range(pool.consumers):
            self._note_consumer("subscribe", self.start, log, first + number, number + 1)
        if pool.stuck:  # its second one left, and came back at once
            for kind, there in (("unsubscribe", pool.consumers - 1), ("subscribe", pool.consumers)):
                self._note_consumer(kind, self.start + self.span // 2, log, first + 1, there)
        at = {"consumer": by}
        self._note("dispatch", given, copies, log, sent_to, **at)
        stuck = pool.stuck & late & (who == 0)
        failing = (dice.random(count) < FAILING) & ~stuck
        dead = failing & (dice.random(count) < DEAD)
        times = dice.integers(1, MOST_REDELIVERIES + 1, count)
        for again in range(1, MOST_REDELIVERIES + 1):
            which = failing & (times >= again)
            moment = done[which] + again * 1000
            self._note("redeliver", moment, copies[which], log, sent_to, consumer=by[which])
            self._note("dispatch", moment + 500, copies[which], log, sent_to, consumer=by[which])
        over = done + failing * (MOST_REDELIVERIES + 1) * 1000
        lost, to = copies[dead], self.events.name(DEAD_LETTERS)
        why = 2 + dice.integers(0, len(CAUSES), dead.sum())
        self._note("dead_letter", over[dead], lost, log, sent_to, consumer=by[dead], reason=why)
        self._note("forward", over[dead], lost, to, sent_to)
        acked = ~dead & ~stuck
        self._note("ack", over[acked], copies[acked], log, sent_to, consumer=by[acked])
        twice = acked & (dice.random(count) < DUPLICATED)
        for kind, after in (("forward", 2000), ("dispatch", 2500), ("ack", 3000)):
            who_did = by[twice] if kind != "forward" else -1
            self._note(kind, over[twice] + after, copies[twice], log, sent_to, consumer=who_did)
        if name == WORK[0]:
            self._bridge(name, log, sent_to, copies[acked & (dice.random(count) < BRIDGED)])

    def _bridge(self, name: str, log: int, sent_to: int, copies: np.ndarray) -> None:
        """Another copy of these went to the other broker, and was processed there once more."""
        came = self.born[copies] + 50_000
        first = len(self.events.consumers)
        self.events.consumers += [f"{name.partition('://')[2]}-east"]
        for kind, before in (("forward", 12_000), ("ack", 10_000), ("bridge_forward", 10_000)):
            self._note(kind, came - before, copies, log, sent_to, consumer=first if kind != "forward" else -1)
        for kind, after, by in (
            ("bridge_receive", 0, -1),
            ("forward", 0, -1),
            ("dispatch", 10, first),
            ("ack", 99, first),
        ):
            self._note(kind, came + after, copies, log, sent_to, consumer=by, broker=1)

    def _note(self, kind: str, ts: np.ndarray, copies: np.ndarray, log: int, sent_to: int, **rest) -> None:
        within = ts < self.end
        rest = {name: value[within] if isinstance(value, np.ndarray) else value for name, value in rest.items()}
        self.events.add(kind, ts[within], copies[within], log, sent_to, **rest)

    def _note_consumer(self, kind: str, ts: int, log: int, consumer: int, count: int) -> None:
        nobody = np.full(1, -1, np.int64)
        self.events.add(kind, np.array([ts]), nobody, log, log, consumer=consumer, depth=count)

    def note_depths(self) -> None:
        """Depths at full hours, and each minute where they changed, of what the events so far say."""
        found = self.events.taken()
        takes = np.isin(found["kind"], [_KIND[each] for each in ("ack", "expire", "dead_letter")])
        change = np.where(found["kind"] == _KIND["forward"], 1, np.where(takes, -1, 0))
        minutes = np.arange(-(-self.start // MINUTE_US) * MINUTE_US, min(self.start + self.span, self.end), MINUTE_US)
        for log in list(self.events.codes.values()):
            for broker in (0, 1):
                ours = (found["destination"] == log) & (found["broker"] == broker) & (change != 0)
                self._note_depth(log, broker, found["ts"][ours], np.cumsum(change[ours]), minutes)

    def _note_depth(self, log: int, broker: int, ts: np.ndarray, level: np.ndarray, minutes: np.ndarray) -> None:
        # Just before the minute: an event of that very microsecond comes after.
        at = np.searchsorted(ts, minutes, side="left")
        depth = np.concatenate(([0], level))[at]
        full = minutes % HOUR_US == 0
        changed = np.diff(depth, prepend=0) != 0
        noted = (full & (depth > 0)) | changed
        nobody = np.full(noted.sum(), -1, np.int64)
        self.events.add(
            "depth", minutes[noted], nobody, log, log, broker=broker, depth=depth[noted],
            reason=np.where(full[noted] & (depth[noted] > 0), -2, -3),
        )  # fmt: skip


# -- files


def write(folder: Path, made: Stretch, id: str) -> int:
    """Write the files of a stretch of time; return the number of events."""
    found = made.events.taken()
    hours = found["ts"] // HOUR_US
    for broker, name in enumerate((BROKER, SECOND_BROKER)):
        of_broker = found["broker"] == broker
        for hour in np.unique(hours[of_broker]):
            rows = {key: column[of_broker & (hours == hour)] for key, column in found.items()}
            day, clock = divmod(int(hour), 24)
            path = folder / f"broker={name}/day={np.datetime64(day, 'D')}/hour={clock:02}/part-{id}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(path, to_archive_schema(_table(rows, made, name), position_in(path.name) or 0))
    return len(hours)


def _write_file(path: Path, events: pa.Table) -> None:
    """Write the file that compaction makes of these events, which were appended a few at a time."""
    merged = MergedFile(path.with_suffix(".tmp"))
    for start in range(0, events.num_rows, APPENDED):
        merged.add("", events.slice(start, APPENDED), np.empty(0, np.uint64))
    merged.finish(path)


def _table(rows: dict[str, np.ndarray], made: Stretch, broker: str) -> pa.Table:
    message, known = rows["message"], rows["message"] >= 0
    place = np.where(known, message, 0)
    number = made.first + place
    properties = known & (rows["kind"] == _KIND["enqueue"])
    columns = {
        "ts": pa.array(rows["ts"]).view(MOMENT),
        "kind": _coded(rows["kind"], KINDS),
        "msg_id": pa.array(np.where(known, np.char.add("ID:sluice-1:", number.astype("U")), ""), pa.string()),
        "destination": _coded(rows["destination"], made.events.names),
        "original": _coded(rows["original"], made.events.names),
        "consumer": _coded(rows["consumer"], made.events.consumers),
        "broker": _coded(np.zeros(len(message), np.int64), [broker]),
        "size": pa.array(np.where(known, made.size[place], rows["depth"])),
        "born": pa.array(np.where(known, made.born[place], rows["ts"])).view(MOMENT),
        "reason": pa.array(_reasons(rows["reason"], number), pa.string()).dictionary_encode(),
        "ps": _map(properties, (("region", np.array(REGIONS)[made.region[place]]), ("n", number.astype("U")))),
        "pn": _map(properties, (("n", number.astype(np.float64)),)),
        "weight": pa.array(np.ones(len(message), np.int32)),
    }
    schema = SCHEMA.remove(SCHEMA.get_field_index("broker"))
    return pa.table({name: columns[name].cast(schema.field(name).type) for name in schema.names}, schema)


def _coded(codes: np.ndarray, texts) -> pa.DictionaryArray:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts or [""], pa.string()))


def _reasons(codes: np.ndarray, numbers: np.ndarray) -> list[str | None]:
    texts = {-2: ALL, -3: CHANGED, 0: "the queue is full", 1: "expired"}
    found = np.full(len(codes), None, object)
    for place in np.flatnonzero(codes != -1).tolist():
        code, number = int(codes[place]), int(numbers[place])
        found[place] = texts.get(code) or CAUSES[code - 2].format(n=number, m=number % 250)
    return found.tolist()


def _map(wanted: np.ndarray, pairs: tuple[tuple[str, np.ndarray], ...]) -> pa.MapArray:
    lengths = np.where(wanted, len(pairs), 0)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    keys = np.tile([name for name, _ in pairs], wanted.sum())
    values = np.stack([values[wanted] for _, values in pairs], axis=1).ravel()
    items = pa.array(values, pa.string() if values.dtype.kind == "U" else pa.float64())
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys, pa.string()), items, mask=pa.array(~wanted))
