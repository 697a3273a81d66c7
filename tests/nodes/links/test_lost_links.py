"""What live nodes say and do not hear, or hear too late: links that are lost and made again, words of another epoch."""

import itertools
import threading

import pytest

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.nodes.delivery import append_notices
from brokerapp.nodes.links.protocol import PeerMessageType
from tests.nodes.conftest import OneNode
from tests.waiting import wait_until


def without_links(node: OneNode, wanted: bool) -> None:
    """Let a node be told nothing and tell nothing, by refusing every link; or let it be linked again."""

    def change() -> None:
        links = node.node.membership._links
        links.proof = (lambda *_: b"no proof") if wanted else type(links).proof.__get__(links)
        for link in list(links._links.values()):
            link.close()
            links.on_link_down(link)

    node.look(change)


def test_what_one_node_stored_while_it_could_not_tell_the_home_is_given_out_when_it_can(broker, client, name):
    queue = broker.queue_at("a", name)
    consumer, producer = client("a"), client("b")
    consumer.subscribe(f"/queue/{queue}")
    producer.send(f"/queue/{queue}", "before", persistent="true")
    assert consumer.bodies() == ["before"]
    without_links(broker["b"], True)
    producer.send(f"/queue/{queue}", "meanwhile", persistent="true")
    without_links(broker["b"], False)
    assert consumer.bodies() == ["meanwhile"]
    producer.send(f"/queue/{queue}", "after", persistent="true")
    assert consumer.bodies() == ["after"]


def test_what_is_sent_and_consumed_away_from_its_home_comes_once_or_flagged_whenever_the_link_is_lost(
    broker, client, name, monkeypatch
):
    monkeypatch.setattr(append_notices, "CACHE_BYTES", 20_000)  # some is named and found, some has to be read
    queue, sender, taker, count = broker.queue_at("a", name), client("b"), client("b"), 300
    taker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=30)
    for number in range(count):
        if number in (100, 200):
            without_links(broker["b"], True)
            without_links(broker["b"], False)
        sender.send(f"/queue/{queue}", str(number), wait=False, persistent="true", n=str(number))
    fresh, seen = [], set()
    while len(seen) < count:
        [message] = taker.take(1)
        if "redelivered" not in message.headers:
            fresh.append(int(message.body))
        seen.add(message.body)
        taker.ack(message, wait=False)
    assert fresh == sorted(set(fresh))
    wait_until(lambda: broker.depth(queue) == 0, "all is acknowledged")


def test_what_comes_and_goes_at_a_node_is_counted_though_its_link_is_lost_meanwhile(broker, client, name):
    queue, sender, taker = broker.queue_at("a", name), client("b"), client("b")
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    sender.send(f"/queue/{queue}", "before", persistent="true")
    [before] = taker.take(1)
    without_links(broker["b"], True)
    taker.ack(before)
    sender.send(f"/queue/{queue}", "meanwhile", persistent="true")
    without_links(broker["b"], False)
    [meanwhile] = taker.take(1)
    taker.ack(meanwhile)
    home = broker["a"].node.broker

    def counted():
        numbers = home.placement.stats_aggregation.with_remote_parts(home.counters.of(Destination.queue(queue)))
        return numbers.EnqueueCount, numbers.EnqueueBytes, numbers.MaxMessageSize, numbers.DequeueCount

    wait_until(lambda: broker["a"].look(counted) == (2, 15, 9, 2), "all is counted")


def test_a_consumer_of_which_a_node_tells_in_a_former_epoch_is_confirmed_in_the_next_one(broker, client, name):
    queue, confirmed = broker.queue_at("a", name), threading.Event()
    client("a").send(f"/queue/{queue}", "x", persistent="true")

    def begin_late() -> None:
        peers = broker["b"].node.broker.placement.peers
        [owner] = peers.other_sessions
        peers.send(owner, PeerMessageType.EPOCH, peers.members.epoch - 1)

    broker["b"].look(begin_late)
    consumer = client("b")
    subscribing = threading.Thread(target=lambda: (consumer.subscribe(f"/queue/{queue}"), confirmed.set()))
    subscribing.start()
    assert not confirmed.wait(0.3)
    broker.start("c")
    try:
        assert confirmed.wait(10)
        subscribing.join()
        assert consumer.bodies() == ["x"]
    finally:
        broker.stop("c")
        peers = [broker[each].node.broker.placement.peers for each in "ab"]
        wait_until(lambda: all(len(each.other_sessions) == 1 for each in peers), "the members are two again")


@pytest.mark.parametrize("durable", [True, False])
def test_who_subscribes_in_the_moment_in_which_a_home_is_told_of_all_consumers_is_told_of_once(
    broker, client, name, monkeypatch, durable
):
    """A durable subscription has one consumer; a queue that is new is not known to its home yet."""
    abroad = broker["b"].node.broker.placement.outbound_consumers
    attach, attached = abroad.attach, []

    def attach_as_a_link_comes_up(subscription, log):
        attached.append(log.name)
        attach(subscription, log)
        abroad.announce_all(log)

    monkeypatch.setattr(abroad, "attach", attach_as_a_link_comes_up)
    consumer = client("b", **{"client-id": name})
    if durable:
        for number in itertools.count():  # until one is at home at the other node
            to = f"/topic/{name}"
            consumer.subscribe(to, id=str(number), **{"activemq.subscriptionName": f"{name}{number}"})
            if attached:
                break
    else:
        to = f"/queue/{broker.queue_at('a', name)}"
        consumer.subscribe(to)
    consumer.send(to, "x", persistent="true")
    assert consumer.bodies() == ["x"]
    assert consumer.errors.empty()


@pytest.mark.parametrize("also_here", [False, True])
def test_a_shared_subscription_that_lives_with_its_consumers_outlives_a_lost_link(broker, client, name, also_here):
    consumer, others = client("b"), [client("a")] if also_here else []
    shared = {"activemq.shared": "true", "activemq.durable": "false"}
    subscribed = [f"{name}{number}" for number in range(8)]  # some of them at home at the other node
    for each in subscribed:
        for who in (consumer, *others):
            who.subscribe(f"/topic/{name}", id=each, **{"activemq.subscriptionName": each}, **shared)
    home = broker["a"].node.broker
    logs = [each for each in home.queues if name in each.name and not each.is_remote]
    assert logs
    without_links(broker["b"], True)
    wait_until(lambda: not broker["a"].node.broker.placement.inbound_consumers.count, "the link is lost")
    for each in others:
        each.leave()
    wait_until(
        lambda: not broker["a"].look(lambda: any(each.consumers for each in logs)), "nobody that is reached consumes"
    )
    without_links(broker["b"], False)
    consumer.send(f"/topic/{name}", "x")
    assert sorted(each.headers["subscription"] for each in consumer.take(8)) == sorted(subscribed)
    consumer.leave()
    wait_until(
        lambda: not any(name in each for each in broker.ask(lambda store: store.logs.all_attributes())),
        "they go with it",
    )


def test_a_group_stays_with_who_holds_some_of_it_behind_a_lost_link_until_that_link_is_back(broker, client, name):
    queue = broker.queue_at("a", name)
    holder, other, sender = client("b"), client("a"), client("a")
    holder.subscribe(f"/queue/{queue}", ack="client-individual")
    sender.send(f"/queue/{queue}", "first", persistent="true", JMSXGroupID="g")
    [first] = holder.take()
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    without_links(broker["b"], True)
    log = broker["a"].node.broker.queues[f"queue://{queue}"]
    wait_until(lambda: broker["a"].look(lambda: len(log.consumers)) == 1, "the guest is gone")
    sender.send(f"/queue/{queue}", "second", persistent="true", JMSXGroupID="g")
    sender.send(f"/queue/{queue}", "of another", persistent="true", JMSXGroupID="h")
    assert other.bodies() == ["of another"]
    assert other.has_no_more()
    without_links(broker["b"], False)
    assert holder.bodies() == ["second"]
    holder.ack(first)
    assert other.has_no_more()


@pytest.mark.parametrize("ends", [False, True])
def test_an_exclusive_queue_waits_for_who_holds_some_of_it_behind_a_lost_link(broker, client, name, ends):
    queue, exclusive = broker.queue_at("a", name), {"activemq.exclusive": "true"}
    holder, stands_by, sender = client("b"), client("a"), client("a")
    holder.subscribe(f"/queue/{queue}", ack="client-individual", **exclusive)
    stands_by.subscribe(f"/queue/{queue}", **exclusive)
    sender.send(f"/queue/{queue}", "first", persistent="true")
    [first] = holder.take()
    without_links(broker["b"], True)
    log = broker["a"].node.broker.queues[f"queue://{queue}"]
    wait_until(lambda: broker["a"].look(lambda: len(log.consumers)) == 1, "the guest is gone")
    sender.send(f"/queue/{queue}", "second", persistent="true")
    assert stands_by.has_no_more()
    if ends:
        holder.ack(first)
        holder.break_off()
    without_links(broker["b"], False)
    assert (stands_by if ends else holder).bodies() == ["second"]
    assert stands_by.has_no_more()


@pytest.mark.parametrize("exclusive", ["false", "true"])
def test_what_a_consumer_held_that_ended_behind_a_lost_link_comes_before_what_waited_for_it(
    broker, client, name, exclusive
):
    """Its group, or the whole of an exclusive queue."""
    queue, how = broker.queue_at("a", name), {"activemq.exclusive": exclusive}
    holder, other, sender = client("b"), client("a"), client("a")
    holder.subscribe(f"/queue/{queue}", ack="client-individual", **how)
    sender.send(f"/queue/{queue}", "first", persistent="true", JMSXGroupID="g")
    holder.take()
    other.subscribe(f"/queue/{queue}", **how)
    without_links(broker["b"], True)
    log = broker["a"].node.broker.queues[f"queue://{queue}"]
    wait_until(lambda: broker["a"].look(lambda: len(log.consumers)) == 1, "the guest is gone")
    sender.send(f"/queue/{queue}", "second", persistent="true", JMSXGroupID="g")
    assert other.has_no_more()
    holder.break_off()
    without_links(broker["b"], False)
    assert other.bodies(2) == ["first", "second"]
    sender.send(f"/queue/{queue}", "third", persistent="true", JMSXGroupID="g")
    assert other.bodies() == ["third"]


def test_a_durable_subscription_is_in_use_while_its_consumer_is_behind_a_lost_link(broker, client, name, monkeypatch):
    homes, durables = broker["a"].node.broker.placement, broker["a"].node.broker.durables
    consumer = client("b", **{"client-id": name})
    names = (f"{name}{number}" for number in itertools.count())
    subscribed = next(each for each in names if homes.is_local(f"subscription://{name}:{each}"))
    consumer.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": subscribed})
    durable = durables.find(name, subscribed)
    wait_until(lambda: broker["a"].look(lambda: durable.log.consumers), "its home knows of its consumer")
    without_links(broker["b"], True)
    wait_until(lambda: not broker["a"].look(lambda: durable.log.consumers), "the link is lost")
    said = []

    def ask_for_it():
        with pytest.raises(RequestRefused, match="in use"):
            durables.remove(durable)
        with monkeypatch.context() as patch:
            patch.setattr(homes.peers, "send", lambda *words: said.append(words))
            homes.inbound_consumers.on_attach("third", 1, 1, durable.log.name, {})

    broker["a"].look(ask_for_it)
    [behind] = (
        homes.peers.other_sessions
    )  # who comes from a third node waits until this one says whether it consumes it still
    assert [(to, word, log) for to, word, _, log in said] == [(behind, PeerMessageType.IS_CONSUMED, durable.log.name)]

    def expelled():
        [session] = homes.peers.other_sessions
        homes.requests.on_member_lost(session)
        active = durable.is_active
        homes.peers.on_member_removed(session)
        return active

    assert not broker["a"].look(expelled)
    without_links(broker["b"], False)
    client("a").send(f"/topic/{name}", "news", persistent="true")
    assert consumer.bodies() == ["news"]
    assert consumer.errors.empty()
    consumer.unsubscribe()
    consumer.frame("UNSUBSCRIBE", id="s", **{"activemq.subscriptionName": subscribed})
    assert consumer.errors.empty()


def test_a_node_that_was_linked_before_it_was_a_member_is_told_all_that_it_would_be_when_it_is_linked(
    broker, monkeypatch
):
    homes = broker["a"].node.broker.placement
    [other] = homes.peers.other_sessions
    broker["a"].look(lambda: setattr(homes.remote_advisories, "_listening", True))
    wait_until(lambda: broker["a"].look(lambda: not homes.requests._pending), "nothing is open that was said before")

    def words(work) -> set[PeerMessageType]:
        said = set()
        with monkeypatch.context() as patch:
            patch.setattr(homes.peers, "send", lambda _session, word, *_: said.add(word))
            broker["a"].do(work)
        return said

    async def link() -> None:
        homes.coordinator.on_link_up(other)
        await broker["a"].node.broker.commits.barrier()

    async def follow() -> None:
        homes.peers.other_sessions.clear()
        await homes.coordinator.on_members_changed(homes.peers.members)
        await broker["a"].node.broker.commits.barrier()

    told = words(link)
    assert {PeerMessageType.LISTENERS, PeerMessageType.SELECTORS, PeerMessageType.GET_CONSUMERS} <= told
    assert told <= words(follow)


def test_a_node_that_was_linked_before_it_was_a_member_knows_who_began_to_listen_in_between(broker, client, name):
    homes = broker["a"].node.broker.placement
    [other] = homes.peers.other_sessions
    broker["a"].look(homes.peers.other_sessions.clear)
    listener = client("a")
    listener.subscribe(f"/topic/{name}")
    assert not broker["b"].look(lambda: list(_listeners_elsewhere(broker["b"], name)))
    broker["a"].do(lambda: homes.coordinator.on_members_changed(homes.peers.members))
    assert homes.peers.other_sessions == [other]
    client("b").send(f"/topic/{name}", "news")
    assert listener.bodies() == ["news"]


def _listeners_elsewhere(node: OneNode, topic: str):
    return node.node.broker.placement.topic_listeners.sessions_listening(Destination.topic(topic))
