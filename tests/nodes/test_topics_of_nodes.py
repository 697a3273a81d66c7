"""Test topics, durable and shared subscriptions, and temporary destinations with clients on two nodes."""

import pytest

from brokerapp.config import Authentication, ConfiguredGrant, User
from brokerapp.model.destination import Destination
from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until


def test_a_message_of_a_topic_reaches_subscribers_on_all_nodes_once(client, name):
    subscribers = [client("a"), client("b"), client("b")]
    for each in subscribers:
        each.subscribe(f"/topic/{name}")
    client("a").send(f"/topic/{name}", "news")
    assert [each.bodies() for each in subscribers] == [["news"]] * 3
    assert all(each.has_no_more() for each in subscribers)


def test_a_subscription_to_a_pattern_hears_topics_of_other_nodes(client, name):
    subscriber = client("b")
    subscriber.subscribe(f"/topic/{name}.*")
    client("a").send(f"/topic/{name}.x", "news")
    assert subscriber.bodies() == ["news"]


def test_who_unsubscribed_is_sent_nothing_more_from_another_node(client, name):
    subscriber, sender = client("b"), client("a")
    subscriber.subscribe(f"/topic/{name}")
    subscriber.unsubscribe()
    sender.send(f"/topic/{name}", "news")
    assert subscriber.has_no_more()


def test_a_durable_subscription_follows_its_client_from_node_to_node(client, name):
    durable = {"activemq.subscriptionName": name}
    first = client("a", **{"client-id": name})
    first.subscribe(f"/topic/{name}", **durable)
    first.leave()
    client("b").send(f"/topic/{name}", "1", persistent="true")
    client("a").send(f"/topic/{name}", "2", persistent="true")
    again = client("b", **{"client-id": name})
    again.subscribe(f"/topic/{name}", ack="client-individual", **durable)
    messages = again.take(2)
    assert [each.body for each in messages] == ["1", "2"]
    for each in messages:
        again.ack(each)


def test_an_unshared_durable_subscription_has_one_consumer_on_all_nodes(client, name):
    durable = {"activemq.subscriptionName": name, "activemq.shared": "false"}
    shares_id = {"client-id": name, "shared-client-id": "true"}
    first, second = client("a", **shares_id), client("b", **shares_id)
    first.subscribe(f"/topic/{name}", **durable)
    second.subscribe(f"/topic/{name}", wait=False, **durable)
    assert "has a consumer already" in second.error().headers["message"]


def test_consumers_on_both_nodes_share_a_shared_subscription(client, name):
    shared = {"activemq.subscriptionName": name, "activemq.shared": "true", "activemq.durable": "false"}
    takers = [client("a"), client("b")]
    for each in takers:
        each.subscribe(f"/topic/{name}", ack="client-individual", **shared)
    for number in range(10):
        takers[0].send(f"/topic/{name}", str(number))
    bodies = takers[0].bodies(5) + takers[1].bodies(5)
    assert sorted(map(int, bodies)) == list(range(10))


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_reply_comes_back_over_a_temporary_destination_of_a_client_on_another_node(client, name, kind):
    asking, answering = client("a"), client("b")
    asking.subscribe(f"/temp-{kind}/replies", id="replies")
    answering.subscribe(f"/queue/{name}", id="questions")
    asking.send(f"/queue/{name}", "question", reply_to=f"/temp-{kind}/replies")
    [question] = answering.take()
    answering.send(question.headers["reply-to"], "answer")
    assert asking.bodies() == ["answer"]


def test_a_temporary_queue_is_gone_on_all_nodes_with_its_client(client, name):
    asking, answering = client("a"), client("b")
    answering.subscribe(f"/queue/{name}", id="questions")
    asking.subscribe("/temp-queue/replies", id="replies")
    asking.send(f"/queue/{name}", "question", reply_to="/temp-queue/replies")
    [question] = answering.take()
    asking.leave()

    def is_refused():
        answering.send(question.headers["reply-to"], "answer")
        return not answering.errors.empty()

    wait_until(is_refused, "it is gone")


def test_a_virtual_topic_fans_out_to_queues_at_home_on_both_nodes(broker, client, name):
    queues = [broker.queue_at(node, f"Consumer.{node}{{}}.VirtualTopic.{name}") for node in "ab"]
    takers = [client("b"), client("a")]
    for taker, queue in zip(takers, queues, strict=True):
        taker.subscribe(f"/queue/{queue}")
    for number in range(5):
        takers[0].send(f"/topic/VirtualTopic.{name}", str(number), persistent="true")
    assert [taker.bodies(5) for taker in takers] == [list("01234")] * 2


def test_a_home_that_a_durable_subscription_has_not_come_to_yet_can_lose_a_consumer_of_it_at_another_node(
    broker, client, name
):
    subscriber = client("a", **{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": name})
    subscriber.leave()
    [log] = [each for each in broker["a"].node.broker.queues if name in each.name]
    at = next(each for each in "ab" if not broker[each].look(lambda each=each: _log(broker[each], log.name).is_remote))
    homes, guests = broker[at].node.broker.placement, broker[at].node.broker.placement.inbound_consumers

    def come_and_go() -> list:
        """The log is about to be at home here, and is not taken yet."""
        here, [other] = _log(broker[at], log.name), homes.peers.other_sessions
        facts = {
            "name": "s", "client_id": name, "prefetch": 1, "destinations": [f"topic://{name}"], "credit": 1,
            "priority": 0, "exclusive": False, "selector": None, "crossing": None, "bridge": "",
        }  # fmt: skip
        here.is_remote = True
        try:
            guests.on_attach(other, 0, 999, log.name, facts)
            guests.on_detach(other, 999, log.name)
        finally:
            here.is_remote = False
        return here.consumers

    assert broker[at].look(come_and_go) == []


def _log(node, name):
    return node.node.broker.queues[name]


def test_a_shared_subscription_is_kept_for_who_consumes_it_first_at_whichever_node(redis_url, name):
    """Of a pattern that is what they may read: who joins from another node changes nothing for the others."""
    anybody = frozenset({"all"})
    login = Authentication((User("ann", "a", anybody), User("eve", "e", anybody | {"much"})))
    grants = (
        ConfiguredGrant(Destination.topic(f"{name}.>"), frozenset({"much"}), anybody, anybody),
        ConfiguredGrant(Destination.topic(f"{name}.open"), anybody, anybody, anybody),
        ConfiguredGrant(Destination.topic("ActiveMQ.Advisory.>"), anybody, anybody, anybody),
        ConfiguredGrant(Destination.topic("nobody.listens"), anybody, anybody, anybody),
    )
    shared = {"activemq.subscriptionName": name, "activemq.shared": "true"}
    with several_nodes(redis_url, "a", "b", authentication=login, authorization=grants) as broker:
        is_at_a = broker["a"].node.broker.placement.is_local(f"subscription://:{name}")
        home, other = ("a", "b") if is_at_a else ("b", "a")
        first = broker[home].client(login="ann", passcode="a")
        first.subscribe(f"/topic/{name}.>", **shared)
        joins = broker[other].client(login="eve", passcode="e")
        joins.subscribe(f"/topic/{name}.>", **shared)
        for topic in ("closed", "open"):
            joins.send(f"/topic/{name}.{topic}", topic, persistent="true")
        wait_until(lambda: first.messages.qsize() + joins.messages.qsize() > 0, "what both may read")
        for each in (first, joins):
            each.round_trip()
        assert [each.body for taker in (first, joins) for each in taker.messages.queue] == ["open"]
        joins.messages.queue.clear()
        first.leave()
        joins.unsubscribe()
        joins.subscribe(f"/topic/{name}.>", **shared)  # now it is the first
        for topic in ("closed", "open"):
            joins.send(f"/topic/{name}.{topic}", topic, persistent="true")
        assert joins.bodies(2) == ["closed", "open"]
