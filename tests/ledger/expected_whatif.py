"""Compute the expected result of a what-if analysis: routes by the active rules and by those of DRAFT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from analytics.model.time_buckets import slot_seconds, slot_starts
from tests.ledger import numbers
from tests.ledger.expected import Account, Expected, Row
from tests.ledger.ledger import ACKED, DEAD, DROPPED, EXPIRED, SENT, Message
from tests.ledger.numbers import GONE, in_time
from tests.ledger.rules import ARCHIVE, ARCHIVED, COMPOSITE, CONSUMER_QUEUES, DRAFT, DURABLES, LEGS, PRICES, VIRTUAL

Legs = Mapping[str, tuple[str, Callable[[dict[str, str]], bool]]]
#: Points of a what-if's chart.
POINTS = 120


def targets_of(message: Message, legs: Legs, *, is_draft: bool) -> list[str]:
    """Where a copy of it is stored: the rules of the load in Python."""
    if message.to == COMPOSITE:
        return [to for to, (_, takes) in legs.items() if takes(dict(message.headers))]
    more = [ARCHIVE] if is_draft and message.to == ARCHIVED else []
    own = [] if message.to.startswith("topic://") else [message.to]
    return {VIRTUAL: CONSUMER_QUEUES, PRICES: DURABLES}.get(message.to, own) + more


def whatif(account: Account) -> Expected:
    """Both sets of definitions side by side. What became of the load is what those in force did with it."""
    kept = account.ledger.kept
    ways = {which: [(each, targets_of(each, legs, is_draft=which == "draft")) for each in kept]
            for which, legs in (("in_force", LEGS), ("draft", DRAFT))}  # fmt: skip
    did = Counter(each.place for each in account.ledger.copies if each.by == SENT and each.is_stored)
    assert did == Counter(to for _, targets in ways["in_force"] for to in targets), "the load does what its rules say"
    targets = [*_targets(account, ways), *_topics(kept)]
    return Expected({}, {
        "totals": (("what",), _totals(ways, targets)), "targets": (("target",), targets),
        "legs": (("definition", "at", "target", "selector"), _legs(kept)),
    })  # fmt: skip


Ways = Mapping[str, Sequence[tuple[Message, list[str]]]]


def _targets(account: Account, ways: Ways) -> list[Row]:
    counts = {which: Counter(to for _, targets in of for to in targets) for which, of in ways.items()}
    sizes: dict[str, Counter[str]] = {"in_force": Counter(), "draft": Counter()}
    for which, of in ways.items():
        for message, targets in of:
            sizes[which].update({to: targets.count(to) * message.size for to in set(targets)})
    depths, served = numbers.depths(account.ledger), _served(account)
    rows = []
    for name in sorted(set(counts["in_force"]) | set(counts["draft"])):
        now, then = counts["in_force"][name], counts["draft"][name]
        waiting, rate = depths.get(name, (0, 0))[0], served.get(name, (0.0, 0.0))
        unserved = waiting + then - now if not rate[1] else None
        rows.append({
            "target": name, "state": "new" if not now else "lost" if not then else "", "in_force": now, "draft": then,
            "difference": then - now, "in_force_bytes": sizes["in_force"][name], "draft_bytes": sizes["draft"][name],
            "served": rate, "waiting_recorded": waiting,
            "waiting_draft": waiting if now == then else (0, then) if unserved is None else unserved,
        })  # fmt: skip
    return rows


def _topics(kept: Sequence[Message]) -> list[Row]:
    """Topics keep nothing; that they are reached says another figure."""
    sent = Counter(each.to for each in kept if each.to.startswith("topic://"))
    return [
        {"target": to, "state": "", **dict.fromkeys(("in_force", "draft"), (0, count)),
         "difference": 0, "in_force_bytes": ..., "draft_bytes": ..., "served": None, "waiting_recorded": None,
         "waiting_draft": None}
        for to, count in sent.items()
    ]  # fmt: skip


def _served(account: Account) -> dict[str, tuple[float, float]]:
    """Messages a minute that left each place in its busiest slot: of so few the 95th percentile is the greatest.

    What operators took away, or waits for a redelivery, may count or not.
    """
    slot = slot_seconds(account.covered, POINTS)
    surely = (ACKED, EXPIRED, DEAD, DROPPED)
    found = {}
    for place in {each.place for each in account.found}:
        left = [each for each in account.found if each.place == place and each.what in GONE]
        bounds = [(begin * 1_000_000, (begin + slot) * 1_000_000) for begin in slot_starts(account.covered, slot)]
        least = max(in_time([each for each in left if each.what in surely], *each)[0] for each in bounds)
        most = max(in_time(left, *each)[1] for each in bounds)
        found[place] = round(least * 60 / slot, 1), round(most * 60 / slot, 1)
    return found


def _totals(ways: Ways, targets: Sequence[Row]) -> list[Row]:
    heard = {which: _heard(of) for which, of in ways.items()}
    nowhere = {which: sum(not to for _, to in of) - heard[which] for which, of in ways.items()}
    stored = [row for row in targets if row["served"] is not None]
    waiting = {"in_force": sum(row["waiting_recorded"] for row in stored), "draft": _sum(stored, "waiting_draft")}
    rows = {
        ("Messages sent", "messages"): {which: len(of) for which, of in ways.items()},
        ("Copies stored", "messages"): {which: sum(len(to) for _, to in of) for which, of in ways.items()},
        ("Bytes of these copies", "bytes"): {
            which: sum(each.size * len(to) for each, to in of) for which, of in ways.items()},
        ("Messages stored at least once", "messages"): {
            which: sum(bool(to) for _, to in of) for which, of in ways.items()},
        ("Bytes of these messages", "bytes"): {
            which: sum(each.size for each, to in of if to) for which, of in ways.items()},
        ("Unrouted messages", "messages"): {
            which: (nowhere[which], nowhere[which] + heard[which]) for which in ways},
        ("Final backlog (draft: predicted)", "messages"): waiting,
        ("Bytes of final backlog (draft: predicted)", "bytes"): {
            "in_force": sum(_bytes(row, "waiting_recorded", "in_force") for row in stored), "draft": ...},
    }  # fmt: skip
    return [{"what": what, "unit": unit, **both, "difference": ...} for (what, unit), both in rows.items()]


def _heard(of: Sequence[tuple[Message, list[str]]]) -> int:
    """Messages of topics that are kept nowhere, and had subscribers."""
    return sum(not to and each.to in ("topic://firehose", "topic://news") for each, to in of)


def _sum(rows: Sequence[Row], name: str) -> tuple[int, int]:
    pairs = [value if isinstance(value := row[name], tuple) else (value, value) for row in rows]
    return sum(least for least, _ in pairs), sum(most for _, most in pairs)


def _bytes(row: Row, waiting: str, which: str) -> int:
    """What waits, in bytes: so many messages of the mean size of those that came."""
    return round(row[waiting] * row[f"{which}_bytes"] / row[which]) if row[which] else 0


def _legs(kept: Sequence[Message]) -> list[Row]:
    orders, sent = [dict(each.headers) for each in kept if each.to == COMPOSITE], Counter(each.to for each in kept)
    rows = []
    for to in LEGS.keys() | DRAFT.keys():
        for selector in {legs[to][0] for legs in (LEGS, DRAFT) if to in legs}:
            now, then = ([order for order in orders if legs[to][1](order)]
                         if to in legs and legs[to][0] == selector else None for legs in (LEGS, DRAFT))  # fmt: skip
            refused = 0 if then is None else len(orders) - len(then)
            rows.append(_leg(COMPOSITE, to, selector.replace("&gt;", ">"), len(now or ()), len(then or ()), refused))
    rows.append(_leg(COMPOSITE, COMPOSITE, None, 0, 0, len(orders)))
    count = sent[ARCHIVED]
    rows += [_leg(ARCHIVED, ARCHIVE, None, 0, count), _leg(ARCHIVED, ARCHIVED, None, count, count)]
    for to in (*CONSUMER_QUEUES, VIRTUAL):
        rows.append(_leg(VIRTUAL, to, None, *[sent[VIRTUAL]] * 2, of="virtualTopic:VirtualTopic.>|Consumer.*.|"))
    for to in DURABLES:
        client = to.removeprefix("subscription://").removesuffix(":prices")
        of = f"durable subscription 'prices' of client-id '{client}'"
        rows.append(_leg(PRICES, to, None, *[sent[PRICES]] * 2, of=of))
    return rows


def _leg(at: str, to: str, selector: str | None, now: int, then: int, refused: int = 0, of: str = "") -> Row:
    return {"leg": ..., "definition": of or f"compositeQueue:{at.removeprefix('queue://')}", "at": at, "target": to,
            "selector": selector, "in_force": now, "taken": then, "refused": refused, "unknown": 0}  # fmt: skip
