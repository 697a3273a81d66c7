"""Decide which member is drained, and to which members logs are assigned. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from brokerapp.engine.clients.temporary_owner import session_of_temporary
from brokerapp.errors import RequestRefused
from brokerapp.model import JsonObject
from brokerapp.nodes.links.members import ASSIGNED, DRAINING, NodeMember, NodeMembers, highest

#: Logs that are assigned to members at most: each node reads their names whenever the members change.
MAX_ASSIGNED = 1_000

Records = Mapping[str, JsonObject]


def drain(records: Records, node: str) -> dict[str, JsonObject]:
    """Return the changed record by which a live member is drained; none if it is. Raises RequestRefused."""
    _check(records, node)
    if records[node].get(DRAINING):
        return {}
    if not [name for name, about in records.items() if name != node and not about.get(DRAINING)]:
        raise RequestRefused(
            f"node {node} cannot be drained: it is the only node that serves clients; start another one first"
        )
    return {node: {**records[node], DRAINING: True, ASSIGNED: []}}


def end_drain(records: Records, node: str) -> dict[str, JsonObject]:
    """Return the changed record by which a member serves again; none if it does. Raises RequestRefused."""
    _check(records, node)
    return {node: {**records[node], DRAINING: False}} if records[node].get(DRAINING) else {}


def _check(records: Records, node: str) -> None:
    if node not in records:
        running = ", ".join(sorted(records)) or "none"
        raise RequestRefused(f"node {node} is not running; running nodes: {running}")
    _check_versions(records)


def _check_versions(records: Records) -> None:
    members = (NodeMember.from_record(*each) for each in records.items())
    if old := sorted(each.name for each in members if not each.knows_assignments):
        raise RequestRefused(
            f"nodes of an earlier version are running, which cannot follow such a change: {', '.join(old)}"
        )


def rebalance(records: Records, logs: Iterable[str]) -> dict[str, JsonObject]:
    """Return the changed records by which all members that serve own equally many logs. Raises RequestRefused."""
    _check_versions(records)
    members = [NodeMember.from_record(*each) for each in records.items()]
    assigned = spread(members, logs)
    return {
        each.name: {**records[each.name], ASSIGNED: sorted(assigned[each.name])}
        for each in members
        if each.assigned != assigned[each.name]
    }


def spread(members: Sequence[NodeMember], logs: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return which logs to assign to each member, by name, so that they own equally many, but for one.

    Few logs move: those that a member owns beyond its share, first those that do not belong there by their hash. At
    most MAX_ASSIGNED are assigned; the others stay where their hash leads.
    """
    present = NodeMembers(0, members, "")
    owners = [each for each in members if not present.is_drained(each.session)]
    if not owners:
        return {each.name: frozenset() for each in members}
    name_of = {each.session: each.name for each in owners}
    home = {log: highest(owners, log).name for log in logs if session_of_temporary(log) not in name_of}
    owned: dict[str, list[str]] = {each.name: [] for each in owners}
    for log in sorted(home):
        owned[name_of[present.owner_of(log)]].append(log)
    least, more = divmod(len(home), len(owners))
    # those that own most keep one more, so that fewer move
    ranked = sorted(owned, key=lambda name: (-len(owned[name]), name))
    share = {name: least + (rank < more) for rank, name in enumerate(ranked)}
    moving = []
    for name, found in owned.items():
        found.sort(key=lambda log: (home[log] != name, log))  # what was assigned to it leaves first
        moving += found[share[name] :]
        del found[share[name] :]
    room = {name: share[name] - len(found) for name, found in owned.items()}
    away = []
    for log in moving:  # first those that can go where their hash leads, which takes no assignment
        if room[home[log]] > 0:
            room[home[log]] -= 1
            owned[home[log]].append(log)
        else:
            away.append(log)
    for log in away:
        target = max(sorted(room), key=lambda name: room[name])
        room[target] -= 1
        owned[target].append(log)
    return _limited({name: [log for log in found if home[log] != name] for name, found in owned.items()}, members)


def _limited(assigned: Mapping[str, Sequence[str]], members: Iterable[NodeMember]) -> dict[str, frozenset[str]]:
    kept = set(sorted(log for found in assigned.values() for log in found)[:MAX_ASSIGNED])
    return {each.name: frozenset(kept.intersection(assigned.get(each.name, ()))) for each in members}
