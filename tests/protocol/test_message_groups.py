"""Test message groups over STOMP: JMSXGroupID and JMSXGroupSeq."""

from dataclasses import replace

import pytest

from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from tests.protocol.running_node import named


def owners(client, count):
    """Who got the next messages: group -> subscription."""
    return {each.headers["JMSXGroupID"]: each.headers["subscription"] for each in client.take(count)}


@pytest.mark.scenario("GR-01", "ST-04")
def test_a_group_goes_to_one_consumer_and_its_headers_are_echoed(connect, name):
    client = connect()
    for id in ("a", "b"):
        client.subscribe(f"/queue/{name}", id=id)
    for number in range(12):
        client.send(f"/queue/{name}", str(number), JMSXGroupID=f"g{number % 3}", JMSXGroupSeq=str(number // 3 + 2))
    seen = client.take(12)
    by_group = {}
    for each in seen:
        by_group.setdefault(each.headers["JMSXGroupID"], []).append(each)
    assert all(len({each.headers["subscription"] for each in one}) == 1 for one in by_group.values())
    assert {each.headers["subscription"] for each in seen} == {"a", "b"}
    for one in by_group.values():
        assert [each.headers.get("JMSXGroupFirstForConsumer") for each in one] == ["true", None, None, None]
        assert [each.headers["JMSXGroupSeq"] for each in one] == ["2", "3", "4", "5"]


@pytest.mark.scenario("GR-02")
def test_a_late_consumer_gets_only_new_groups(connect, name):
    client = connect()
    for id in ("first", "second"):
        client.subscribe(f"/queue/{name}", id=id)
    for group in "AB":
        client.send(f"/queue/{name}", group, JMSXGroupID=group)
    before = owners(client, 2)
    client.subscribe(f"/queue/{name}", id="late")
    for group in "ABC":
        client.send(f"/queue/{name}", group, JMSXGroupID=group)
    assert owners(client, 3) == {**before, "C": "late"}


@pytest.mark.scenario("GR-02")
def test_a_group_whose_owner_is_gone_goes_on_in_order_with_another(connect, name):
    one, other = connect(), connect()
    one.subscribe(f"/queue/{name}", ack="client-individual", prefetch=3)
    for number in range(6):
        other.send(f"/queue/{name}", str(number), JMSXGroupID="g")
    one.take(3)
    other.subscribe(f"/queue/{name}", ack="client-individual")
    assert other.has_no_more(), "the rest waits for its owner"
    one.break_off()
    seen = other.take(6)
    assert named(seen) == ["0", "1", "2", "3", "4", "5"]
    assert [each.headers.get("redelivered") for each in seen] == ["true"] * 3 + [None] * 3
    assert [each.headers.get("JMSXGroupFirstForConsumer") for each in seen] == ["true"] + [None] * 5


@pytest.mark.scenario("GR-02")
def test_a_negative_sequence_number_closes_a_group_and_a_one_gives_it_anew(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}", id="a")
    client.send(f"/queue/{name}", "1", JMSXGroupID="g")
    client.send(f"/queue/{name}", "2", JMSXGroupID="other")
    client.take(2)
    client.subscribe(f"/queue/{name}", id="b")
    client.send(f"/queue/{name}", "3", JMSXGroupID="g", JMSXGroupSeq="-1")
    assert owners(client, 1) == {"g": "a"}
    client.send(f"/queue/{name}", "4", JMSXGroupID="g")
    assert owners(client, 1) == {"g": "b"}, "it owns fewest"
    client.send(f"/queue/{name}", "5", JMSXGroupID="more")
    client.take()
    client.subscribe(f"/queue/{name}", id="c")
    client.send(f"/queue/{name}", "6", JMSXGroupID="g", JMSXGroupSeq="1")
    assert owners(client, 1) == {"g": "c"}


def test_a_group_waits_for_its_owner_while_others_go_on(connect, name):
    client = connect()
    for id in ("a", "b"):
        client.subscribe(f"/queue/{name}", id=id, ack="client-individual", prefetch=2)
    for number in range(4):
        client.send(f"/queue/{name}", f"g{number}", JMSXGroupID="g")
    held = client.take(2)
    client.send(f"/queue/{name}", "plain")
    assert client.bodies() == ["plain"]
    client.ack(held[0])
    assert client.bodies() == ["g2"]


def test_a_selector_and_a_group_must_both_agree(connect, name):
    client = connect()
    client.subscribe(f"/queue/{name}", id="red", selector="colour = 'red'")
    client.subscribe(f"/queue/{name}", id="any")
    client.send(f"/queue/{name}", "1", JMSXGroupID="g", colour="red")
    [first] = client.take()
    for id in {"red", "any"} - {first.headers["subscription"]}:
        client.unsubscribe(id)
    client.send(f"/queue/{name}", "2", JMSXGroupID="g", colour="red")
    assert owners(client, 1) == {"g": first.headers["subscription"]}


@pytest.mark.scenario("GR-02")
def test_a_queue_waits_for_the_consumers_its_policy_wants_so_that_groups_spread(connect, node, name):
    policy = PolicyEntry(
        Destination.queue(name), consumers_before_dispatch_starts=3, time_before_dispatch_starts=20_000,
    )  # fmt: skip

    async def change(admin):
        current = await admin.definitions()
        return await admin.define(replace(current, policies=(policy,)), "test")

    node.wait_for_definitions(node.ask(change).version)
    client = connect()
    for number in range(30):
        client.send(f"/queue/{name}", str(number), JMSXGroupID=f"g{number % 3}")
    for id in ("a", "b"):
        client.subscribe(f"/queue/{name}", id=id)
    assert client.has_no_more()
    client.subscribe(f"/queue/{name}", id="c")
    seen = client.take(30)
    counts = [sum(each.headers["subscription"] == id for each in seen) for id in "abc"]
    assert counts == [10, 10, 10]
