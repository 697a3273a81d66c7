"""Test operations on queues and selected messages: pause, move, copy, retry, remove, message groups."""

import itertools

import pytest

from brokerapp.engine.routing.route_walk import MAX_HOPS
from brokerapp.errors import BrokerError, RequestRefused, SelectorSyntaxError
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from tests.waiting import wait_until


def queue(name):
    return Destination.queue(name)


def fill(client, name, count=6, **headers):
    for number in range(count):
        client.send(f"/queue/{name}", str(number), parity="odd" if number % 2 else "even", **headers)


@pytest.mark.scenario("AD-12", "X24")
def test_a_paused_queue_takes_messages_gives_none_and_can_be_browsed(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    node.ask(lambda admin: admin.pause(queue(name)))
    fill(client, name, 3)
    assert client.has_no_more()
    assert node.bodies(name) == ["0", "1", "2"]
    assert node.numbers(queue(name)).Paused
    client.subscribe(f"/queue/{name}", id="b", browser="true")
    assert [client.take()[0].body for _ in range(4)] == ["0", "1", "2", ""]
    node.ask(lambda admin: admin.purge(queue(name)))
    fill(client, name, 1)
    assert client.has_no_more(), "a purge does not end the pause"
    node.ask(lambda admin: admin.pause(queue(name), False))
    assert client.bodies() == ["0"]


@pytest.mark.scenario("AD-02", "AD-15")
def test_messages_are_moved_by_selector_and_in_order(connect, node, name):
    fill(connect(), name)
    moved = node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"), selector="parity = 'odd'", limit=2))
    assert moved == 2
    assert (node.bodies(name), node.bodies(f"{name}.to")) == (["0", "2", "4", "5"], ["1", "3"])
    assert {each.original_destination for each in node.browse(f"{name}.to")} == {f"/queue/{name}"}
    assert node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"))) == 4
    assert node.bodies(f"{name}.to") == ["1", "3", "0", "2", "4", "5"]
    assert node.depth(name) == 0


def test_what_is_moved_on_says_where_it_ever_was(connect, node, name):
    fill(connect(), name, 1)
    for here, there in ((name, f"{name}.to"), (f"{name}.to", f"{name}.on")):
        node.ask(lambda admin, here=here, there=there: admin.move(queue(here), queue(there)))
    [message] = node.browse(f"{name}.on")
    assert message.headers["dlqRoute"] == f"/queue/{name},/queue/{name}.to"


@pytest.mark.scenario("AD-05")
def test_what_was_moved_once_is_not_there_to_be_moved_again(connect, node, name):
    fill(connect(), name, 2)
    [first, _] = node.browse(name)
    assert node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"), ids=[first.id])) == 1
    assert node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"), ids=[first.id])) == 0
    assert (node.bodies(name), node.bodies(f"{name}.to")) == (["1"], ["0"])


@pytest.mark.scenario("AD-03", "AD-15")
def test_messages_are_copied_purged_and_copied_back(connect, node, name):
    fill(connect(), name)
    assert node.ask(lambda admin: admin.copy(queue(name), queue(f"{name}.to"), selector="parity = 'even'")) == 3
    assert node.depth(name) == 6
    assert node.ask(lambda admin: admin.purge(queue(name))) == 6
    assert node.ask(lambda admin: admin.copy(queue(f"{name}.to"), queue(name))) == 3
    assert node.bodies(name) == node.bodies(f"{name}.to") == ["0", "2", "4"]


@pytest.mark.scenario("AD-04")
def test_a_queue_is_not_moved_or_copied_to_itself(connect, node, name):
    fill(connect(), name, 1)
    for verb in ("move", "copy"):
        with pytest.raises(RequestRefused, match="already"):
            node.ask(lambda admin, verb=verb: getattr(admin, verb)(queue(name), queue(name)))
    with pytest.raises(SelectorSyntaxError, match="position"):
        node.ask(lambda admin: admin.remove(queue(name), selector="parity ="))


@pytest.mark.parametrize("verb", ["move", "copy"])
@pytest.mark.parametrize("target", ["temp-queue://ID:gone", "queue://::{}.unknown", "queue://a::{}"])
def test_where_no_message_can_come_none_is_taken(connect, node, name, verb, target):
    client, to = connect(), Destination.parse(target.format(name))
    fill(client, name, 2)
    with pytest.raises(RequestRefused):
        node.ask(lambda admin: getattr(admin, verb)(queue(name), to))
    client.subscribe(f"/queue/{name}")
    assert client.bodies(2) == ["0", "1"]


@pytest.mark.scenario("AD-06", "AD-15")
def test_messages_in_the_middle_are_removed(connect, node, name):
    fill(connect(), name)
    third = node.browse(name)[2]
    assert node.ask(lambda admin: admin.remove(queue(name), ids=[third.id])) == 1
    assert node.bodies(name) == ["0", "1", "3", "4", "5"]
    assert node.ask(lambda admin: admin.remove(queue(name), selector="parity = 'odd'")) == 3
    assert node.bodies(name) == ["0", "4"]


@pytest.mark.scenario("AD-07")
def test_dead_letters_are_retried_and_fail_again(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "poison", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    dead, mine = queue("ActiveMQ.DLQ"), f"dlqDeliveryFailureCause IS NOT NULL AND case = '{name}'"
    client.nack(client.take()[0])
    client.send(f"/queue/{name}", "poison too", persistent="true", case=name)
    for _ in range(2):
        client.nack(client.take()[0])
        wait_until(lambda: any(each.headers.get("case") == name for each in node.browse("ActiveMQ.DLQ")), "it is dead")
        assert node.ask(lambda admin: admin.resubmit(dead, selector=mine)) == 1
    assert client.take()[0].body == "poison too"


def test_what_consumers_hold_is_left_to_them(connect, node, name):
    client = connect()
    fill(client, name)
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    held = client.take(2)
    assert node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"))) == 4
    assert node.bodies(f"{name}.to") == ["2", "3", "4", "5"]
    for each in held:
        client.ack(each)
    assert node.depth(name) == 0


def test_a_transfer_ends_also_where_its_messages_come_back(connect, node, name):
    fill(connect(), name, 3)
    node.define(CompositeDestination(queue(f"{name}.to"), (ForwardTarget(queue(name)),)))
    assert node.ask(lambda admin: admin.move(queue(name), queue(f"{name}.to"))) == 3
    assert node.bodies(name) == ["0", "1", "2"]


@pytest.mark.scenario("AD-13", "Q20")
def test_a_long_queue_with_a_consumer_is_purged_but_for_what_that_holds(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=3)
    for number in range(2_000):
        client.send(f"/queue/{name}", str(number), wait=False)
    wait_until(lambda: node.depth(name) == 2_000, "all are stored")
    held = client.take(3)
    assert node.ask(lambda admin: admin.purge(queue(name))) == 1_997
    for each in held:
        client.ack(each)
    assert node.depth(name) == 0
    client.send(f"/queue/{name}", "next")
    assert client.bodies() == ["next"]


@pytest.mark.scenario("Q17")
@pytest.mark.parametrize("action", ["purge", "delete"])
def test_what_an_operator_purges_or_deletes_is_no_dead_letter(connect, node, name, action):
    fill(connect(), name, persistent="true")
    node.ask(lambda admin: getattr(admin, action)(queue(name)))
    assert f"/queue/{name}" not in {each.original_destination for each in node.browse("ActiveMQ.DLQ")}


@pytest.mark.scenario("Q15")
def test_the_dead_letter_queue_can_be_sent_to_paused_browsed_purged_and_deleted_as_any_queue(connect, node, name):
    dlq, client = "ActiveMQ.DLQ", connect()
    node.ask(lambda admin: admin.purge(queue(dlq)))
    client.send(f"/queue/{name}", "failed", persistent="true")
    client.subscribe(f"/queue/{name}", id="w", ack="client-individual")
    client.nack(client.take()[0])
    client.send(f"/queue/{dlq}", "sent", persistent="true")
    wait_until(lambda: node.bodies(dlq) == ["failed", "sent"], "both are there")
    node.ask(lambda admin: admin.pause(queue(dlq)))
    client.subscribe(f"/queue/{dlq}", id="d")
    assert client.has_no_more()
    node.ask(lambda admin: admin.pause(queue(dlq), False))
    assert client.bodies(2) == ["failed", "sent"]
    client.unsubscribe("d")
    client.send(f"/queue/{dlq}", "sent again", persistent="true")
    assert node.ask(lambda admin: admin.purge(queue(dlq))) == 1
    node.ask(lambda admin: admin.delete(queue(dlq)))
    client.send(f"/queue/{name}", "failed after that", persistent="true")
    client.nack(client.take()[0])
    wait_until(lambda: node.bodies(dlq) == ["failed after that"], "the next dead letter creates the queue again")


@pytest.mark.scenario("GR-01")
def test_groups_are_listed_and_assigned_anew(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", id="one")
    client.send(f"/queue/{name}", "1", JMSXGroupID="g")
    client.take()
    client.subscribe(f"/queue/{name}", id="two")
    assert node.ask(lambda admin: admin.groups(queue(name))) == [["g", client.heard["session"], "one"]]
    assert node.ask(lambda admin: admin.reset_groups(queue(name), "other")) == 0
    assert node.ask(lambda admin: admin.reset_groups(queue(name), "g")) == 1
    assert node.ask(lambda admin: admin.groups(queue(name))) == []
    client.send(f"/queue/{name}", "2", JMSXGroupID="g")
    assert client.take()[0].headers["JMSXGroupFirstForConsumer"] == "true"
    assert node.ask(lambda admin: admin.reset_groups(queue(name))) == 1


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_a_way_that_turns_out_to_have_no_end_is_told_and_nothing_is_taken_nor_does_the_node_stand_still(
    connect, node, name, verb
):
    fill(connect(), name, 2)
    chain = [queue(f"{name}.{number}") for number in range(MAX_HOPS + 3)]
    node.define(*(CompositeDestination(each, (ForwardTarget(after),)) for each, after in itertools.pairwise(chain)))
    with pytest.raises(RequestRefused, match="forwards"):
        node.ask(lambda admin: getattr(admin, verb)(queue(name), chain[0]))
    assert node.ask(lambda admin: admin.purge(queue(name))) == 2, "nothing is held, and the node still answers"


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_a_message_that_would_come_nowhere_stays(connect, node, name, verb):
    fill(connect(), name, 1)
    node.define(
        CompositeDestination(
            queue(f"{name}.to"), (ForwardTarget(queue(f"{name}.odd"), "parity = 'odd'"),), forward_only=True
        )
    )
    with pytest.raises(RequestRefused, match="would be lost"):
        node.ask(lambda admin: getattr(admin, verb)(queue(name), queue(f"{name}.to")))
    assert node.bodies(name) == ["0"]


def test_a_request_the_node_fails_at_is_answered(node, name):
    with pytest.raises(BrokerError, match="internal error in purge"):
        node.ask(lambda admin: admin._ask("purge", destiny=name))
