"""Compute the expected result of each analysis from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from analytics.model.time_buckets import slot_seconds, slot_starts
from analytics.requests.request import TimeWindow
from analytics.rollups.log_histogram import ERROR
from tests.ledger import numbers
from tests.ledger.ledger import ACKED, DEAD, EXPIRED, RETURNED, Ledger, Span
from tests.ledger.numbers import GIVEN, GONE, SENT, STORED, Happening, count, in_time, size
from tests.ledger.rules import COMPOSITE, DLQ, LEGS, VIRTUAL

PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99}

#: The depth, in messages, up to which the analysis forecasts where nothing else is asked for.
LIMIT = 100_000

#: A row by the names of its columns. A pair is the least and the greatest value; a function says whether a value is
#: right; ... stands for what is no number and follows from others.
Row = dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """The figures of a headline by their labels, and the rows of each table by the columns that are their key."""

    headline: Mapping[str, Any]
    tables: Mapping[str, tuple[tuple[str, ...], Sequence[Row]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """A ledger, and the window that is asked about: all of it happened in there."""

    ledger: Ledger
    window: TimeWindow

    @cached_property
    def found(self) -> list[Happening]:
        """All that happened."""
        return numbers.happenings(self.ledger)

    @cached_property
    def seconds(self) -> tuple[float, float]:
        """How long the record is, at least and at most: it begins when the first client comes."""
        began = self.ledger.messages[0].born
        return (self.window.until_us - began.before) / 1e6, (self.window.until_us - self.window.since_us) / 1e6

    @cached_property
    def covered(self) -> TimeWindow:
        """The part of the window that is recorded: all but a moment."""
        return self.window

    @cached_property
    def slot(self) -> int:
        """Seconds of a slot of a chart."""
        return slot_seconds(self.covered)

    def rate(self, messages: int) -> tuple[float, float]:
        """Messages a second."""
        least, most = self.seconds
        return messages / most, messages / least


# -- traffic, league, weeks


def traffic(account: Account) -> Expected:
    found = account.found
    columns = {"sent": count(found, SENT), "stored": count(found, STORED), "dispatched": count(found, GIVEN),
               "acked": count(found, ACKED)}  # fmt: skip
    bytes_sent, bytes_stored = size(found, SENT), size(found, STORED)
    places = sorted({place for each in columns.values() for place in each})
    rows = [
        {"destination": place, **{name: each[place] for name, each in columns.items()},
         "bytes": max(bytes_sent[place], bytes_stored[place])}
        for place in places
    ]  # fmt: skip
    figures = {"Sent": "sent", "Copies stored": "stored", "Acknowledged": "acked"}
    return Expected(
        {**{label: sum(columns[name].values()) for label, name in figures.items()}, "Bytes sent": bytes_sent.total(),
         **slowest(account)},
        {
            "traffic": (("destination",), rows),
            "latency": (("destination",), _latencies(account, "destination")),
            "traffic-by-time": (("slot", "destination"), list(_by_time(account))),
        },
    )  # fmt: skip


def _by_time(account: Account) -> list[Row]:
    rows, kinds = [], {"sent": SENT, "stored": STORED, "dispatched": GIVEN, "acked": ACKED}
    for begin in slot_starts(account.window, account.slot):
        within = begin * 1_000_000, (begin + account.slot) * 1_000_000
        may = [each for each in account.found if each.when.before >= within[0] and each.when.after < within[1]]
        for place in sorted({each.place for each in may}):
            here = [each for each in may if each.place == place]
            row = {name: in_time([each for each in here if each.what == what], *within) for name, what in kinds.items()}
            rows.append({
                "slot": datetime.fromtimestamp(begin, UTC), "destination": place, **row,
                "bytes": (0, max(sum(each.size for each in here if each.what == what) for what in (SENT, STORED))),
            })  # fmt: skip
    return rows


def league(account: Account) -> Expected:
    producers, consumers = (_ranking(account, what) for what in (SENT, ACKED))
    return Expected(
        {"Producers": len(producers), "Sent": sum(each["messages"] for each in producers),
         "Consumers": len(consumers), "Acknowledged": sum(each["messages"] for each in consumers)},
        {"producers": (("client",), producers), "consumers": (("client",), consumers)},
    )  # fmt: skip


def _ranking(account: Account, what: str) -> list[Row]:
    done = [each for each in account.found if each.what == what]
    by, sizes = count(done, what, by="client"), size(done, what, by="client")
    rows = []
    for client, messages in by.items():
        places = count([each for each in done if each.client == client], what)
        most = [place for place, times in places.items() if times == max(places.values())]
        rows.append({
            "client": client, "messages": messages, "share": messages / len(done), "rate": account.rate(messages),
            "bytes": sizes[client], "places": len(places), "destination": most.__contains__,
        })  # fmt: skip
    return rows


def weeks(account: Account, before: Ledger, until: int) -> Expected:
    """Beside a week in which the same happened `until` a moment, and no more."""
    earlier = [each for each in numbers.happenings(before) if each.when.before <= until]
    now, then = ({
        "arrived": count(found, SENT) | count(found, STORED), "acked": count(found, ACKED),
        "failed": count(found, DEAD, EXPIRED),
    } for found in (account.found, earlier))  # fmt: skip
    rows = [
        {
            "destination": place,
            "arrived": now["arrived"][place], "before": then["arrived"][place],
            "change": (now["arrived"][place] - then["arrived"][place]) / then["arrived"][place]
            if then["arrived"][place] else None,
            "acked": now["acked"][place], "acked_before": then["acked"][place],
            "failed": now["failed"][place], "failed_before": then["failed"][place],
        }
        for place in sorted({place for each in now.values() for place in each})
    ]  # fmt: skip
    return Expected(
        {"Enqueued": now["arrived"].total(), "Previous": then["arrived"].total(),
         "Dead-lettered (expired included)": now["failed"].total()},
        {"weeks": (("destination",), rows)},
    )  # fmt: skip


# -- latency


def latency(account: Account) -> Expected:
    return Expected(
        {"Acknowledged": count(account.found, ACKED).total(), **slowest(account)},
        {
            "latency": (("destination",), _latencies(account, "destination")),
            "latency-by-consumer": (("client", "destination"), _latencies(account, "client", "destination")),
        },
    )


def slowest(account: Account) -> Row:
    """The 95th percentile of each destination, under the label that it would have."""
    return {
        f"p95 at {row['destination'].removeprefix('queue://')}": row["p95_ms"]
        for row in _latencies(account, "destination")
    }


def _latencies(account: Account, *key: str) -> list[Row]:
    names = [{"destination": "place"}.get(each, each) for each in key]
    times = numbers.latencies(account.found, lambda each: tuple(getattr(each, name) for name in names))
    return [
        {**dict(zip(key, values, strict=True)), "acked": len(spans),
         **{name: milliseconds(numbers.percentile(spans, part)) for name, part in PERCENTILES.items()}}
        for values, spans in times.items()
    ]  # fmt: skip


#: Microseconds that a message takes through the broker at least: reading it, storing it or not, writing it.
FASTEST = 5


def milliseconds(span: Span) -> tuple[float, float]:
    """The same in milliseconds, as far as a histogram may be from it."""
    return max(FASTEST, span.after) / 1000 / (1 + ERROR) - 0.001, span.before / 1000 * (1 + ERROR) + 0.001


# -- depth


def depth(account: Account) -> Expected:
    ledger, until = account.ledger, account.window.until_us
    begins = slot_starts(account.window, account.slot)
    ends = [min((each + account.slot) * 1_000_000, until) for each in begins]
    over_time = [numbers.depths(ledger, each) for each in ends[:-1]] + [numbers.depths(ledger)]
    recent = begins[-max(1, round(len(begins) * 0.25))] * 1_000_000
    began = account.window.since_us, ledger.messages[0].born.before
    seconds = (until - max(recent, began[1])) / 1e6, (until - max(recent, began[0])) / 1e6
    held = Counter(place for place, _ in ledger.subscribed.keys() - ledger.left.keys())
    rows = []
    for place, (left, _) in numbers.depths(ledger).items():
        here = [each for each in account.found if each.place == place]
        courses = [each[place] for each in over_time]
        came, went = (
            in_time([each for each in here if each.what in what], recent, until + 1)
            for what in ((STORED, RETURNED), GONE)
        )
        rows.append({
            "destination": place, "depth": left,
            "least": (min(low for low, _ in courses), min(high for _, high in courses)),
            "most": (max(low for low, _ in courses), max(high for _, high in courses)),
            "came": _per_second(came, seconds), "went": _per_second(went, seconds),
            "drained_seconds": _time_left(left, went, came, seconds),
            "consumers": (held[place],).__contains__ if held[place] else (0, None).__contains__,
            "full_seconds": _time_left(LIMIT - left, came, went, seconds), "limit": f"{LIMIT:,} messages",
        })  # fmt: skip
    grow = [row for row in rows if row["came"][1] > row["went"][0]]
    surely = [row for row in rows if row["came"][0] > row["went"][1]]
    return Expected(
        {"Backlog": sum(row["depth"] for row in rows), "Growing queues": (len(surely), len(grow)),
         "Next limit reached in": _soonest([row["full_seconds"] for row in rows])},
        {"depths": (("destination",), rows)},
    )  # fmt: skip


def _soonest(times: Sequence[Any]) -> Any:
    """The least of times of which each is between two values, may be none, or is none."""
    may = [each.least for each in times if isinstance(each, PerhapsTime)]
    surely = [each for each in times if isinstance(each, tuple)]
    if not surely:
        return PerhapsTime(min(may)) if may else None
    return min([*may, *(least for least, _ in surely)]), min(most for _, most in surely)


@dataclass(frozen=True)
class PerhapsTime:
    """A time of at least so many seconds, or none, as rates are not known exactly."""

    least: float

    def __call__(self, got: float | None) -> bool:
        """Whether a value is right."""
        return got is None or got >= self.least


def _per_second(messages: tuple[int, int], seconds: tuple[float, float]) -> tuple[float, float]:
    return messages[0] / seconds[1] - 0.001, messages[1] / seconds[0] + 0.001


def _time_left(messages: int, towards: tuple[int, int], away: tuple[int, int], seconds: tuple[float, float]) -> Any:
    """Seconds until so many are through at these rates; None where it never comes to that."""
    if not messages or towards[1] <= away[0]:
        return None
    least = messages * seconds[0] / (towards[1] - away[0]) - 0.001
    if towards[0] <= away[1]:
        return PerhapsTime(least)
    return least, messages * seconds[1] / (towards[0] - away[1]) + 0.001


# -- copies


def fan_out(account: Account) -> Expected:
    copied = [each for each in account.found if each.what == STORED and each.place != each.original]
    sent, bytes_sent = count(account.found, SENT), size(account.found, SENT)
    legs, rows = [], []
    for original in sorted({each.original for each in copied}):
        mine = [each for each in account.found if each.what == STORED and each.original == original]
        copies, sizes = count(mine, STORED), size(mine, STORED)
        legs += [{"original": original, "destination": to, "copies": copies[to], "bytes_copied": sizes[to]}
                 for to in copies]  # fmt: skip
        rows.append({
            "original": original, "targets": len(copies), "sent": sent[original], "copies": copies.total(),
            "factor": round(copies.total() / sent[original], 3), "bytes_sent": bytes_sent[original],
            "bytes_copied": sizes.total(),
        })  # fmt: skip
    return Expected(
        {"Sent": sum(row["sent"] for row in rows), "Copies": sum(row["copies"] for row in rows),
         "Bytes of copies": sum(row["bytes_copied"] for row in rows),
         "Most copies per message": max(row["factor"] for row in rows)},
        {"fan-out": (("original",), rows), "copies": (("original", "destination"), legs)},
    )  # fmt: skip


def filters(account: Account) -> Expected:
    sent = count(account.found, SENT)
    copies = count([each for each in account.found if each.original == COMPOSITE], STORED)
    rows = [_leg(COMPOSITE, to, selector.replace("&gt;", ">"), sent[COMPOSITE], copies[to],
                 "" if copies[to] else "never matches") for to, (selector, _) in LEGS.items()]  # fmt: skip
    rows.append(_leg("queue://never.sent", "queue://never.reached", None, 0, 0, "no messages sent"))
    copies = count([each for each in account.found if each.original == VIRTUAL], STORED)
    rows += [_leg(VIRTUAL, to, None, sent[VIRTUAL], taken, "") for to, taken in copies.items()]
    return Expected(
        {"Targets": len(rows), "Never matched": 1, "Without messages": 1},
        {"filters": (("at", "destination"), rows)},
    )


def _leg(at: str, to: str, selector: str | None, sent: int, taken: int, says: str) -> Row:
    return {"at": at, "destination": to, "selector": selector, "sent": sent, "taken": taken,
            "rate": taken / sent if sent else None, "says": says}  # fmt: skip


def orphans(account: Account) -> Expected:
    found, rows = account.found, []
    sent, stored, acked, given = (count(found, what) for what in (SENT, STORED, ACKED, GIVEN))
    bytes_sent, bytes_stored = size(found, SENT), size(found, STORED)
    copied_elsewhere = {each.original for each in found if each.what == STORED and each.place != each.original}
    for place in sorted(set(sent) | set(stored)):
        if acked[place] or place in copied_elsewhere or place == DLQ:
            continue
        came = [each.when for each in found if each.place == place and each.what in (SENT, STORED)]
        read = [each.when for each in found if each.place == place and each.what == GIVEN]
        rows.append({
            "destination": place,
            "finding": "never acknowledged" if given[place] else "no consumers",
            "arrived": max(sent[place], stored[place]), "bytes": max(bytes_sent[place], bytes_stored[place]),
            "dispatched": given[place], "last_arrived": last(came), "last_read": last(read),
        })  # fmt: skip
    unread = sum(not row["dispatched"] for row in rows)
    return Expected(
        {"Without consumers": unread, "Never acknowledged": len(rows) - unread, "Unused definitions": 1,
         "Unconsumed messages": sum(row["arrived"] for row in rows)},
        {"orphans": (("destination",), rows),
         "unused": (("definition",), [{"definition": "compositeQueue:never.sent",
                                       "destination": "queue://never.sent"}])},
    )  # fmt: skip


def last(spans: Sequence[Span]) -> Any:
    """When the last of these was."""
    return (moment(max(each.after for each in spans)), moment(max(each.before for each in spans))) if spans else None


def first(spans: Sequence[Span]) -> Any:
    """When the first of these was."""
    return moment(min(each.after for each in spans)), moment(min(each.before for each in spans))


def moment(us: int) -> datetime:
    """A moment as tables have it."""
    return datetime.fromtimestamp(us / 1e6, UTC)
