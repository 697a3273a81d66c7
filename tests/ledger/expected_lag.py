"""Compute the expected lag of each queue and subscription: what waits since when, and how fast it is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.model.time_buckets import slot_starts
from tests.ledger import numbers
from tests.ledger.expected import Account, Expected, Row, moment
from tests.ledger.ledger import ACKED, DEAD, DROPPED, EXPIRED, PUT_OFF, RETURNED, Copy
from tests.ledger.numbers import STORED, Happening, in_time

#: How a copy leaves by its consumers or its age, and not by an operator.
SERVED = (ACKED, DEAD, EXPIRED, DROPPED, PUT_OFF)
#: Seconds by which the node, whose start begins the recording, may have started before the load.
HEAD_START = 1.0


def lag(account: Account) -> Expected:
    until = account.window.until_us
    ends = [min((each + account.slot) * 1_000_000, until) for each in slot_starts(account.window, account.slot)]
    rows: list[Row] = []
    over_time: list[Row] = []
    for place in sorted({each.place for each in account.ledger.copies if each.is_stored}):
        copies = [each for each in account.ledger.copies if each.place == place and each.is_stored]
        here = [each for each in account.found if each.place == place]
        mine = [_at(account, copies, here, each) for each in ends]
        slots = zip([0, *ends], ends, mine, strict=False)
        over_time += [
            {"time": moment(end), "destination": place, **row, "acknowledged_seconds": _mean_age(here, begin, end)}
            for begin, end, row in slots
        ]
        rows.append({
            "destination": place, **mine[-1], "acknowledged_seconds": _mean_age(here, 0, until + 1),
            "oldest_max_seconds": ..., "behind_max_seconds": ...,
        })  # fmt: skip
    held = [row for row in rows if row["depth"]]
    late = [row["behind_seconds"] for row in held if row["behind_seconds"]]
    return Expected(
        {"Oldest message": _greatest([row["oldest_seconds"] for row in held]), "Most behind": _greatest(late),
         "With messages": len(held), "Of these not served": sum(row["behind_seconds"] is None for row in held)},
        {"lag": (("destination",), rows), "lag-by-time": (("time", "destination"), over_time)},
    )  # fmt: skip


def _greatest(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return max(low for low, _ in bounds), max(high for _, high in bounds)


def _at(account: Account, copies: Sequence[Copy], here: Sequence[Happening], end: int) -> Row:
    """The lag at a moment. The load is shorter than the time over which rates are averaged."""
    is_last = end == account.window.until_us
    waits = [(each, *numbers.is_there(each, None if is_last else end)) for each in copies]
    must, may = ([each for each, *there in waits if there[index]] for index in (1, 0))
    least, most = account.ledger.messages[0].born.before, account.window.since_us
    seconds = max(0.001, (end - least) / 1e6), (end - most) / 1e6 + HEAD_START
    arrived, served = (
        in_time([each for each in here if each.what in what], 0, end + is_last) for what in ((STORED, RETURNED), SERVED)
    )
    return {
        "depth": len(must) if is_last else (len(must), len(may)),
        "oldest_seconds": _oldest(must, may, end), "certainty": _certainty(must, may),
        "behind_seconds": _behind(len(must), served, seconds) if is_last else ...,
        "arrival_rate": _rate(arrived, seconds), "service_rate": _rate(served, seconds),
    }  # fmt: skip


def _oldest(must: Sequence[Copy], may: Sequence[Copy], end: int) -> Any:
    if not may:
        return None
    most = (end - min(each.message.born.after for each in may)) / 1e6
    if not must:
        return lambda age: age is None or 0 <= age <= most
    return max(0.0, (end - min(each.message.born.before for each in must)) / 1e6), most


def _certainty(must: Sequence[Copy], may: Sequence[Copy]) -> Any:
    """Everything is recorded: an age is exact wherever there is one."""
    return "exact" if must else "" if not may else ("exact", "").__contains__


def _behind(depth: int, served: tuple[int, int], seconds: tuple[float, float]) -> Any:
    if not depth:
        return 0.0
    return (depth * seconds[0] / served[1], depth * seconds[1] / served[0]) if served[0] else None


def _rate(messages: tuple[int, int], seconds: tuple[float, float]) -> tuple[float, float]:
    return messages[0] / seconds[1] - 0.001, messages[1] / seconds[0] + 0.001


def _mean_age(here: Sequence[Happening], begin: int, end: int) -> Any:
    """The mean age of what was acknowledged in a time, in seconds, where all of it is known to be in there or not."""
    acked = [each for each in here if each.what == ACKED]
    touched = [each for each in acked if each.when.before >= begin and each.when.after < end]
    inside = [each for each in touched if begin <= each.when.after and each.when.before < end]
    if len(inside) < len(touched):
        return ...
    if not inside:
        return None
    ages = [each.when - each.born for each in inside]
    return sum(each.after for each in ages) / len(ages) / 1e6, sum(each.before for each in ages) / len(ages) / 1e6
