"""Test which members are drained and which logs are assigned to members, with drawn members and logs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.errors import RequestRefused
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.membership.member_changes import MAX_ASSIGNED, drain, end_drain, rebalance, spread

NOW = int(PeerMessageType.TAKEN_OVER)
BEFORE = NOW - 1

names = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)
logs = st.sets(st.integers(0, 500).map("queue://orders.{}".format), max_size=120)


def records(*names, version=NOW, **changed):
    """What the store has of members."""
    return {name: {"session": f"s-{name}", "link": "", "last_word": version, **changed.get(name, {})} for name in names}


def members_of(found):
    return NodeMembers(1, [NodeMember.from_record(*each) for each in found.items()], "")


def owned(found, logs):
    """The logs of each member, by name."""
    members = members_of(found)
    name_of = {each.session: each.name for each in members}
    by_name = {name: set() for name in found}
    for log in logs:
        by_name[name_of[members.owner_of(log)]].add(log)
    return by_name


@settings(max_examples=60, deadline=None)
@given(names, logs, st.data())
def test_after_a_rebalance_members_own_equally_many_whatever_was_assigned_before(names, logs, data):
    before = records(*names)
    for log in data.draw(st.lists(st.sampled_from(sorted(logs)), unique=True)) if logs else ():
        before[data.draw(st.sampled_from(names))].setdefault("assigned", []).append(log)
    drained = set(data.draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names) - 1)))
    for name in drained:
        before[name]["draining"] = True
    after = {**before, **rebalance(before, logs)}

    counts = {name: len(found) for name, found in owned(after, logs).items()}
    assert all(not counts[name] for name in drained)
    serving = [count for name, count in counts.items() if name not in drained]
    assert max(serving) - min(serving) <= 1
    assert sum(serving) == len(logs)
    assert rebalance(after, logs) == {}, "a second one has nothing to do"


@settings(max_examples=60, deadline=None)
@given(names, logs)
def test_a_rebalance_moves_only_what_a_member_owns_beyond_its_share(names, logs):
    before = records(*names)
    first, second = owned(before, logs), owned({**before, **rebalance(before, logs)}, logs)
    most = -(-len(logs) // len(names))
    moved = sum(len(first[name] - second[name]) for name in names)
    assert moved <= sum(max(0, len(found) - len(logs) // len(names)) for found in first.values())
    assert all(second[name] >= first[name] for name in names if len(first[name]) < most - 1)


def test_so_many_logs_are_assigned_at_most():
    found = records("a", "b")
    logs = [f"queue://orders.{number}" for number in range(40 * MAX_ASSIGNED)]
    at_b = sorted(owned(found, logs)["b"])[: 2 * MAX_ASSIGNED + 2]
    assigned = spread(list(members_of(found)), at_b)
    assert {name: len(each) for name, each in assigned.items()} == {"a": MAX_ASSIGNED, "b": 0}


@given(names.filter(lambda found: len(found) > 1), logs)
def test_a_drained_member_owns_nothing_and_only_its_own_logs_move(names, logs):
    before = records(*names)
    after = {**before, **drain(before, names[0])}
    first, second = owned(before, logs), owned(after, logs)
    assert second[names[0]] == set()
    assert all(second[name] >= first[name] for name in names[1:])
    assert owned({**after, **end_drain(after, names[0])}, logs) == first


def test_a_drained_member_that_is_left_alone_owns_all():
    found = records("a", "b", a={"draining": True})
    assert members_of(found).is_drained("s-a")
    del found["b"]
    assert not members_of(found).is_drained("s-a")
    assert owned(found, ["queue://x"]) == {"a": {"queue://x"}}


def test_while_a_node_of_an_earlier_version_is_a_member_nothing_is_assigned_or_drained():
    logs = [f"queue://orders.{number}" for number in range(50)]
    plain = records("a", "b", "c")
    changed = records("a", "b", "c", a={"draining": True}, b={"assigned": logs})
    changed["c"]["last_word"] = BEFORE
    assert owned(changed, logs) == owned(plain, logs)
    assert not members_of(changed).is_drained("s-a")
    for change in (lambda: drain(changed, "b"), lambda: end_drain(changed, "a"), lambda: rebalance(changed, logs)):
        with pytest.raises(RequestRefused, match=r"earlier version.*: c"):
            change()


def test_the_last_node_that_serves_cannot_be_drained_and_an_unknown_one_is_refused_by_name():
    with pytest.raises(RequestRefused, match="node a cannot be drained: it is the only node"):
        drain(records("a"), "a")
    with pytest.raises(RequestRefused, match="node b cannot be drained: it is the only node that serves"):
        drain(records("a", "b", a={"draining": True}), "b")
    with pytest.raises(RequestRefused, match="node c is not running; running nodes: a, b"):
        drain(records("a", "b"), "c")
    assert drain(records("a", "b", a={"draining": True}), "a") == {}
    assert end_drain(records("a"), "a") == {}
