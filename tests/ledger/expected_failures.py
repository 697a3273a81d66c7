"""Compute the expected results of analyses of failures and redeliveries."""

from __future__ import annotations

from collections import Counter

from tests.ledger import numbers
from tests.ledger.expected import Account, Expected, first, last
from tests.ledger.ledger import ACKED, DEAD, DROPPED, EXPIRED
from tests.ledger.numbers import Happening

#: What operators take away did not fail.
OUTCOMES = {DEAD: "dead letter", EXPIRED: "expired", DROPPED: "dropped"}


def dead_letters(account: Account) -> Expected:
    failed = [each for each in account.found if each.what in OUTCOMES]
    groups: dict[tuple[str, str, str], list[Happening]] = {}
    for each in failed:
        key = OUTCOMES[each.what], each.reason.replace("delivery 3", "delivery \N{HORIZONTAL ELLIPSIS}"), each.place
        groups.setdefault(key, []).append(each)
    causes, examples = [], []
    for (outcome, cause, place), mine in groups.items():
        spans = [each.when for each in mine]
        clients = {each.client for each in mine} - {""}
        causes.append({
            "cause": cause, "outcome": outcome, "destination": place, "messages": len(mine),
            "share": len(mine) / len(failed), "first": first(spans), "last": last(spans),
            # Who was about to be given an expired message may be named, or not.
            "consumers": (0, 1) if cause == "expired" else len(clients),
        })  # fmt: skip
        ids = {account.ledger.messages[each.number].id for each in mine} - {""}
        examples.append({
            "destination": place, "reason": mine[0].reason, "at": last(spans), "client": ...,
            "message": (lambda id, ids=ids: id in ids if ids else bool(id)),
        })  # fmt: skip
    counts = Counter(dict.fromkeys(OUTCOMES.values(), 0))
    for row in causes:
        counts[row["outcome"]] += row["messages"]
    return Expected(
        {"Dead letters": counts["dead letter"], "Expired": counts["expired"],
         "Dropped": counts["dropped"]},
        {"causes": (("outcome", "cause", "destination"), causes), "examples": (("destination", "reason"), examples)},
    )  # fmt: skip


def repeats(account: Account) -> Expected:
    stays = numbers.stays(account.ledger)
    processed = (
        (copy, each)
        for stay in stays for copy in stay for each in copy.deliveries
        if each.how == ACKED and not each.is_undone
    )  # fmt: skip
    acked = Counter(
        (copy.place, copy.message.number, each.consumer if not copy.is_stored else "") for copy, each in processed
    )
    again: dict[str, list[tuple[int, str]]] = {}
    for stay in stays:
        times = sum(len(copy.deliveries) for copy in stay)
        if times > 1:
            again.setdefault(stay[0].place, []).append((times - 1, stay[0].message.id))
    rows = []
    for place in sorted({at for at, _, _ in acked} | set(again)):
        messages = sum(at == place for at, _, _ in acked)
        most = max((times for times, _ in again.get(place, ())), default=0)
        ids = {id for times, id in again.get(place, ()) if times == most}
        redelivered = len(again.get(place, ()))
        rows.append({
            "destination": place, "messages": messages, "redelivered": redelivered,
            "rate": redelivered / max(messages, redelivered, 1), "most": most,
            "most_redelivered": ids.__contains__ if ids else None,
            "duplicated": sum(times > 1 for (at, _, _), times in acked.items() if at == place),
            "across": 0, "most_processed": None,
        })  # fmt: skip
    return Expected(
        {"Processed": sum(row["messages"] for row in rows),
         "Redelivered": sum(row["redelivered"] for row in rows),
         "Duplicates": sum(row["duplicated"] for row in rows), "By two brokers": 0},
        {"repeats": (("destination",), rows)},
    )  # fmt: skip
