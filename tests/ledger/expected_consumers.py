"""Compute the expected results of analyses of consumers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tests.ledger import numbers
from tests.ledger.expected import Account, Expected, moment
from tests.ledger.ledger import ACKED, Delivery, Span

#: Deliveries by place and consumer.
Consumers = dict[tuple[str, str], list[Delivery]]


#: Of the messages of a queue, the part that others would have to have taken for shares to be even, from which on they
#: are uneven; and messages of each consumer below which nothing is said.
UNEVEN, FEWEST = 0.1, 10


def skew(account: Account) -> Expected:
    """Consumers that were there at one time share a queue."""
    consumers = _consumers(account)
    queues, members = [], []
    for place in sorted({place for place, _ in consumers}):
        mine = {client: [each for each in account.found if each.what == ACKED and each.place == place
                         and each.client == client] for at, client in consumers if at == place
                and _neighbours(account, consumers, place, client)}  # fmt: skip
        if len(mine) < 2:
            continue
        total, most = sum(map(len, mine.values())), max(map(len, mine.values()))
        misplaced = sum(max(0.0, len(done) / total - 1 / len(mine)) for done in mine.values())
        enough = total >= FEWEST * len(mine)
        queues.append({
            "destination": place, "consumers": len(mine), "acked": total, "share": most / total,
            "client": {client for client, done in mine.items() if len(done) == most}.__contains__,
            "factor": round(most / total * len(mine), 3), "misplaced": (misplaced - 0.0001, misplaced + 0.0001),
            "verdict": "too few messages" if not enough else
            "uneven" if misplaced >= UNEVEN else "even",
        })  # fmt: skip
        members += [
            {"client": client, "destination": place, "acked": len(done), "share": len(done) / total,
             "factor": round(len(done) / total * len(mine), 3), "bytes_acked": sum(each.size for each in done)}
            for client, done in mine.items()
        ]  # fmt: skip
    return Expected(
        {"Queues with competing consumers": len(queues),
         "Shared unevenly": sum(row["verdict"] == "uneven" for row in queues),
         "Highest skew": (0.2399, 0.2401)},  # of pair: see load.shares
        {"skew": (("destination",), queues), "shares": (("destination", "client"), members)},
    )  # fmt: skip


def _consumers(account: Account) -> Consumers:
    """All of queues and subscriptions."""
    found: Consumers = {}
    for each in account.ledger.deliveries:
        if each.copy.is_stored:
            found.setdefault((each.copy.place, each.consumer), []).append(each)
    return found


def health(account: Account, quiet: float = 300.0) -> Expected:
    """How consumers did their work while they were there."""
    until, rows, consumers = account.window.until_us, [], _consumers(account)
    held = {key: numbers.holding(deliveries, until) for key, deliveries in consumers.items()}
    for (place, client), deliveries in consumers.items():
        left = account.ledger.left.get((place, client))
        holds = sum(each.ended is None for each in deliveries)
        dids = [each.ended or each.given for each in deliveries]
        idle = Span(until, until) - Span(max(each.after for each in dids), max(each.before for each in dids))
        beside = [held[place, each] for each in _neighbours(account, consumers, place, client)]
        rows.append({
            "client": client, "destination": place, "dispatched": len(deliveries), "holds": holds,
            "acked": sum(each.how == ACKED for each in deliveries),
            "held_ms": (held[place, client].after / 1000 - 1, held[place, client].before / 1000 + 1),
            "quiet_seconds": ... if holds else (idle.after / 1e6 - 0.001, idle.before / 1e6 + 0.001),
            "state": _state(holds > 0, idle.after >= quiet * 1e6, _slow(held[place, client], beside)).__contains__,
            "left": (moment(left.after), moment(left.before)) if left else None,
        })  # fmt: skip
    stuck, behind, slow = ([row for row in rows if row["state"](state)] for state in ("stuck", "lagging", "slow"))
    return Expected(
        {"Consumers": len(rows), "Stuck": len(stuck), "Lagging": len(behind),
         "Slow": (sum(not row["state"]("healthy") for row in slow), len(slow))},
        {"consumers": (("client", "destination"), rows)},
    )  # fmt: skip


def _state(holds: bool, is_quiet: bool, slow: tuple[bool, bool]) -> set[str]:
    """What may be said of a consumer. Who went away is not judged by what came later; who holds messages in the end of
    the load finishes none.
    """
    if holds:
        return {"stuck"} if is_quiet else {"lagging"}
    must, may = slow
    return {"slow"} if must else {"healthy", "slow"} if may else {"healthy"}


def _slow(held: Span, beside: Sequence[Span]) -> tuple[bool, bool]:
    """Whether a consumer must, and whether it may, hold messages three times longer than those beside it."""
    if not beside:
        return False, False
    least, most = (max(median(getattr(each, side) for each in beside), 1_000) for side in ("after", "before"))
    return held.after > 3 * most, held.before > 3 * least


def _neighbours(account: Account, consumers: Consumers, place: str, client: str) -> list[str]:
    """Other consumers that were there at a time when this one was."""

    def there(name: str) -> tuple[int, int]:
        came, left = (times.get((place, name)) for times in (account.ledger.subscribed, account.ledger.left))
        return came.after if came else 0, left.before if left else 1 << 62

    began, ended = there(client)
    others = (name for at, name in consumers if at == place and name != client)
    return [name for name in others if began < there(name)[1] and there(name)[0] < ended]
