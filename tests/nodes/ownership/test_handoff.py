"""Nodes that leave, die, stand still and join: logs move, nothing is lost, and only what was held comes again."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest

from brokerapp.model.destination import Destination
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.runtime.node import DRAIN_SECONDS
from tests.nodes.conftest import TIMEOUT_MS, several_nodes
from tests.nodes.links.test_lost_links import without_links
from tests.waiting import wait_until


@pytest.fixture
def broker(redis_url):
    """A broker of two nodes for one test, which may do to them what it likes."""
    with several_nodes(redis_url, "a", "b", scheduler_support=True, keep_durable_subs_active=False) as several:
        yield several


def hold(broker, client, queue, count=6):
    """A queue with `count` messages, of which a consumer on `a` holds the first three."""
    keeper = client("a", **{"client-id": queue})
    keeper.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=3)
    for number in range(count):
        keeper.send(f"/queue/{queue}", str(number), persistent="true")
    return keeper, keeper.take(3)


def flagged(messages):
    return [(each.body, "redelivered" in each.headers) for each in messages]


@pytest.mark.scenario("K05")
def test_when_a_home_leaves_consumers_go_on_and_keep_what_they_hold(broker, client, name):
    queue = broker.queue_at("b", name)
    keeper, held = hold(broker, client, queue)
    broker.stop("b")
    wait_until(lambda: broker.members() == {"a"}, "b left")
    for each in held:
        keeper.ack(each)
    assert flagged(keeper.take(3)) == [("3", False), ("4", False), ("5", False)]


def test_a_durable_subscription_is_active_or_offline_wherever_it_is_at_home(broker, client, name):
    durable = {"activemq.subscriptionName": name}
    subscriber, senders = client("a", **{"client-id": name}), [client("a"), client("b")]
    subscriber.subscribe(f"/topic/{name}", **durable)
    for sender in senders:  # an active one gets also what is not persistent, from any node
        sender.send(f"/topic/{name}", "x")
    assert subscriber.bodies(2) == ["x", "x"]
    [log] = [each for each in broker.ask(lambda store: store.logs.all_attributes()) if each.startswith("subscription")]

    def is_home(node):
        return not broker[node].look(lambda: broker[node].node.broker.queues[log].is_remote)

    assert broker.admin(lambda admin: admin.peers.offline()) == {}
    left = time.time() * 1000 - 1
    subscriber.leave()
    [home] = filter(is_home, "ab")
    [other] = {"a", "b"} - {home}
    assert broker.admin(lambda admin: admin.peers.offline())[log] > left
    broker.stop(home)
    wait_until(lambda: is_home(other), "it is at home at the other node")
    assert broker.admin(lambda admin: admin.peers.offline())[log] > left


def test_when_a_home_leaves_groups_and_an_exclusive_queue_stay_with_who_holds_some_of_them(broker, client, name):
    grouped, exclusive = broker.queue_at("b", name), broker.queue_at("b", f"{name}.only")
    takers, sender = [client("a") for _ in range(3)], client("a")
    for taker in takers:
        taker.subscribe(f"/queue/{grouped}", id="g", ack="client-individual")
        taker.subscribe(f"/queue/{exclusive}", id="x", ack="client-individual", **{"activemq.exclusive": "true"})

    def send(numbers):
        for number in numbers:
            sender.send(f"/queue/{grouped}", str(number), persistent="true", JMSXGroupID=f"g{number % 4}")
            sender.send(f"/queue/{exclusive}", str(number), persistent="true")

    def taken(count):
        wait_until(lambda: sum(taker.messages.qsize() for taker in takers) == count, "all are given out")
        found = [(place, each) for place, taker in enumerate(takers) for each in taker.take(taker.messages.qsize())]
        groups = {(each.headers["JMSXGroupID"], place) for place, each in found if each.headers["subscription"] == "g"}
        return groups, {place for place, each in found if each.headers["subscription"] == "x"}

    send(range(4))
    owners, [only] = taken(8)
    assert len(owners) == 4
    broker.stop("b")
    wait_until(lambda: broker.members() == {"a"}, "b left")
    send(range(4, 8))
    assert taken(8) == (owners, {only})


@pytest.mark.scenario("K01", "D08")
def test_when_a_home_is_killed_consumers_go_on_and_keep_what_they_hold(broker, client, name):
    queue = broker.queue_at("b", name)
    keeper, held = hold(broker, client, queue)
    broker.crash("b")
    for each in held:
        keeper.ack(each)
    messages = keeper.take(3)
    assert flagged(messages) == [("3", False), ("4", False), ("5", False)]
    assert keeper.has_no_more()
    for each in messages:
        keeper.ack(each)
    wait_until(lambda: broker["a"].depth(queue) == 0, "the new home has counted anew")


@pytest.mark.scenario("K07", "D10")
def test_what_consumers_of_a_killed_node_held_comes_back_flagged_and_nothing_else(broker, client, name):
    queue = broker.queue_at("b", name)
    only, exclusive = broker.queue_at("b", f"{name}.only"), {"activemq.exclusive": "true"}
    keeper, _ = hold(broker, client, queue)
    keeper.subscribe(f"/queue/{only}", id="only", ack="client-individual", prefetch=3, **exclusive)
    for number in range(6):
        keeper.send(f"/queue/{only}", str(number), persistent="true")
    keeper.take(3)
    stands_by = client("b")
    stands_by.subscribe(f"/queue/{only}", **exclusive)
    assert stands_by.has_no_more()
    client("a").send(f"/queue/{name}.later", "due", persistent="true", AMQ_SCHEDULED_DELAY="1000")
    broker.crash("a")
    late = client("b")  # what was to be sent later by the node that is gone is sent by the other
    late.subscribe(f"/queue/{name}.later")
    assert late.bodies() == ["due"]
    log = broker["b"].node.broker.queues[f"queue://{queue}"]
    wait_until(lambda: not broker["b"].look(lambda: log.in_flight), "nobody holds any of it")
    other = client("b")
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    messages = other.take(6)
    assert flagged(messages) == [(str(number), number < 3) for number in range(6)]
    for each in messages:
        other.ack(each)
    assert broker.depth(queue) == 0
    wait_until(lambda: broker["b"].depth(queue) == 0, "the home has counted anew")
    assert flagged(stands_by.take(6)) == [(str(number), number < 3) for number in range(6)]


@pytest.mark.scenario("K03")
def test_a_node_that_stood_still_is_fenced_and_what_it_held_was_given_to_others(broker, client, name):
    queue = broker.queue_at("a", name)
    here, away = broker.queue_at("a", f"{name}.here"), broker.queue_at("b", f"{name}.away")
    keeper, _ = hold(broker, client, queue)
    ready = client("a")
    for each in (here, away):  # served by the node that stands still: with what it is sent, and from its link
        ready.subscribe(f"/queue/{each}", id=each)
    go_on = broker["a"].stall()
    ready.send(f"/queue/{here}", "late", wait=False, persistent="true")
    other = client("b")
    other.send(f"/queue/{away}", "late", persistent="true")
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    client("b", **{"client-id": queue})  # nobody has that id any more
    messages = other.take(6)
    go_on()
    assert {("0", True), ("1", True), ("2", True)} <= set(flagged(messages))
    assert sorted(each.body for each in messages) == [str(number) for number in range(6)]
    assert keeper.disconnected.wait(30)  # it finds itself fenced, and its clients must go elsewhere
    assert keeper.messages.empty()
    assert ready.disconnected.wait(30)
    assert ready.messages.empty()
    for each in messages:
        other.ack(each)
    assert broker.depth(queue) == 0
    asked = time.monotonic()
    broker.stop("a")
    assert time.monotonic() - asked < DRAIN_SECONDS / 2  # it has nothing to store any more


@pytest.mark.scenario("K02")
def test_a_node_that_stood_still_for_a_moment_goes_on_with_what_its_consumers_hold(broker, client, name):
    queue = broker.queue_at("a", name)
    keeper, held = hold(broker, client, queue)
    other = client("b")
    go_on = broker["a"].stall()
    time.sleep(0.3 * TIMEOUT_MS / 1000)
    other.subscribe(f"/queue/{queue}", wait=False)
    go_on()
    assert flagged(other.take(3)) == [("3", False), ("4", False), ("5", False)]
    for each in held:
        keeper.ack(each)
    wait_until(lambda: broker.depth(queue) == 0, "the acknowledgements")
    assert broker.members() == {"a", "b"}


@pytest.mark.scenario("K06", "K14")
def test_of_three_nodes_two_die_and_the_third_has_all_but_what_was_not_committed(broker, client, name):
    broker.start("c")
    queues = [broker.queue_at(node, f"{name}.{node}") for node in "abc"]
    for queue in queues:
        hold(broker, client, queue)
    undecided = client("b")
    undecided.connection.begin(transaction="never")
    for queue in queues:
        undecided.subscribe(f"/queue/{queue}", id=queue, ack="client-individual", prefetch=1)
        undecided.ack(undecided.take()[0], transaction="never")
        undecided.send(f"/queue/{queue}", "never", wait=False, persistent="true", transaction="never")
    undecided.send(f"/queue/{name}.known", "after these", persistent="true")
    for node in "ab":
        broker.crash(node)
    taker = client("c")
    for queue in queues:
        taker.subscribe(f"/queue/{queue}", id=queue)
        messages = taker.take(6)
        assert [each.body for each in messages] == list("012345")
        assert all("redelivered" in each.headers for each in messages[:4])
    assert taker.has_no_more()
    assert broker.members() == {"c"}


@pytest.mark.scenario("K08")
def test_when_the_node_that_takes_over_is_killed_too_the_third_one_has_all_of_it_once(broker, client, name):
    broker.start("c")
    queue = broker.queue_at("a", name)
    hold(broker, client, queue)
    broker.crash("a")
    wait_until(lambda: broker.members() == {"b", "c"}, "a is expelled")

    def owners():
        return [node for node in "bc" if not broker[node].look(lambda node=node: is_away(broker[node], queue))]

    wait_until(lambda: len(owners()) == 1, "one of them owns the queue")
    [taker] = owners()
    broker.crash(taker)  # it has just begun: what it has read and promised is gone with it
    [last] = {"b", "c"} - {taker}
    consumer = client(last)
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    messages = consumer.take(6)
    assert [each.body for each in messages] == list("012345")
    assert all("redelivered" in each.headers for each in messages[:3])
    assert consumer.has_no_more()
    for each in messages:
        consumer.ack(each)
    wait_until(lambda: broker.depth(queue) == 0, "all are acknowledged")


def is_away(node, queue):
    """Whether a node gives a queue's messages to another one, its owner; so it is while it does not know the queue."""
    log = node.node.broker.queues.get(f"queue://{queue}")
    return log is None or log.is_remote


@pytest.mark.scenario("K09")
def test_a_killed_node_that_starts_before_others_missed_it_joins_as_a_new_one_with_nothing_of_its_own(
    broker, client, name
):
    queue = broker.queue_at("a", name)
    hold(broker, client, queue)
    other = client("b")
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    before = broker.ask(lambda store: store.nodes.members())[1]["a"]["session"]
    broker.crash("a")
    broker.start("a")
    after = broker.ask(lambda store: store.nodes.members())[1]["a"]["session"]
    assert before != after
    messages = other.take(6)
    assert sorted(each.body for each in messages) == list("012345")
    assert {each.body for each in messages if "redelivered" in each.headers} >= set("012")
    assert other.has_no_more()


@pytest.mark.scenario("K11")
def test_while_queues_of_a_silent_node_wait_clients_connect_and_operators_create_at_the_others(broker, client, name):
    waiting = broker.queue_at("b", name)
    client("a").send(f"/queue/{waiting}", "waits", persistent="true")
    go_on = broker["b"].stall()
    try:
        newcomer = client("a")
        here = broker.queue_at("a", f"{name}.here")
        newcomer.subscribe(f"/queue/{here}")
        newcomer.send(f"/queue/{here}", "at once", persistent="true")
        assert newcomer.bodies() == ["at once"]
        broker.admin(lambda admin: admin.create(Destination.queue(f"{name}.declared")))
        newcomer.send(f"/queue/{waiting}", "too", persistent="true")
        newcomer.subscribe(f"/queue/{waiting}", id="w")
        assert newcomer.bodies(2) == ["waits", "too"], "they come when the queue has been taken over"
    finally:
        go_on()


@pytest.mark.scenario("K15")
def test_a_queue_that_a_client_made_at_a_killed_node_is_listed_with_its_messages(broker, client, name):
    queue = broker.queue_at("b", name)
    client("b").send(f"/queue/{queue}", "kept", persistent="true")
    broker.crash("b")
    wait_until(lambda: broker.members() == {"a"}, "b is expelled")

    def listed():
        found = broker.admin(lambda admin: admin.stats())[1]
        return {each.destination.name: each.QueueSize for each in found}.get(queue)

    wait_until(lambda: listed() == 1, "it is listed with its message")


def test_a_node_that_stood_still_alone_gives_out_nothing_that_another_may_have_taken_over(broker, client, name):
    broker.stop("b")
    hold(broker, client, name)
    late = client("a")
    go_on = broker["a"].stall()
    late.subscribe(f"/queue/{name}", wait=False)  # read in the moment in which it goes on
    broker.start("b")
    go_on()
    assert late.disconnected.wait(30)  # it finds itself fenced
    assert late.messages.empty()
    taker = client("b")
    taker.subscribe(f"/queue/{name}")
    messages = taker.take(6)
    assert [each.body for each in messages] == list("012345")
    assert all("redelivered" in each.headers for each in messages[:3])


def test_logs_move_to_a_node_that_joins_with_what_is_held(broker, client, name):
    keeper = client("a")
    queues = [f"{name}.{number}" for number in range(8)]
    for queue in queues:
        keeper.subscribe(f"/queue/{queue}", id=queue, ack="client-individual", prefetch=1)
        for number in range(3):
            keeper.send(f"/queue/{queue}", f"{queue} {number}", persistent="true")
    held = keeper.take(8)
    assert keeper.has_no_more()
    broker.start("c")
    assert len({broker.queue_at(node, name) for node in "abc"}) == 3
    assert keeper.has_no_more()
    for each in held:
        keeper.ack(each)
    more = keeper.take(8)
    assert sorted(each.body for each in more) == sorted(f"{queue} 1" for queue in queues)
    assert not any("redelivered" in each.headers for each in more)


def test_what_was_dropped_on_its_way_to_a_consumer_as_its_queue_moved_comes_flagged(broker, client, name):
    queues = [_queue_with_owners(f"{name}.{place}", ab="a", abc="c") for place in range(4)]
    taker = client("b")
    for queue in queues:
        taker.subscribe(f"/queue/{queue}", id=queue, ack="client-individual", prefetch=1)
    wait_until(
        lambda: broker["a"].node.broker.placement.inbound_consumers.count == len(queues),
        "their owner knows the consumers",
    )
    abroad, former = broker["b"].node.broker.placement.outbound_deliveries, broker["a"].node.broker.session
    given = abroad.on_delivery  # what comes from a former owner is dropped; here all is that comes from it
    abroad.on_delivery = lambda session, *what: None if session == former else given(session, *what)
    for queue in queues:
        for number in range(2):
            taker.send(f"/queue/{queue}", f"{queue} {number}", persistent="true")
    unacked = broker["a"].node.broker.placement.remote_unacked
    wait_until(lambda: all(unacked.sessions(f"queue://{each}") for each in queues), "one of each is on its way")
    broker.start("c")
    del abroad.on_delivery
    other = client("c")
    for queue in queues:
        other.subscribe(f"/queue/{queue}", id=queue)
    got = flagged(other.take(len(queues)) + taker.take(len(queues)))
    assert set(got) == {(f"{queue} {number}", number == 0) for queue in queues for number in range(2)}


def test_a_node_gives_out_nothing_of_a_log_before_it_knows_what_consumers_at_other_nodes_hold(broker, client, name):
    moves, stays = _queue_with_owners(f"{name}.moves", abc="a", bc="c"), _queue_with_owners(f"{name}.stays", abc="c")
    keeper = client("b")
    for queue in (moves, stays):
        keeper.subscribe(f"/queue/{queue}", id=queue, ack="client-individual", prefetch=10)
    keeper.send(f"/queue/{moves}", "0", persistent="true")
    held = keeper.take()
    broker.start("c")  # which learns that there is a message
    for body in ("1", "2"):
        keeper.send(f"/queue/{moves}", body, persistent="true")
    held += keeper.take(2)
    at_c, log = broker["c"], broker["c"].node.broker.queues[f"queue://{moves}"]
    with _late_to_finish(broker["b"]):
        broker.stop("a")
        wait_until(lambda: at_c.look(lambda: log.consumers), "b has told of its consumer")
        at_c.do(at_c.node.broker.commits.barrier)  # what it may read of the queue is read
        keeper.send(f"/queue/{stays}", "behind it", persistent="true")
        assert flagged(keeper.take()) == [("behind it", False)]
        assert at_c.look(lambda: log.is_remote), "b has not told of all yet"
    for each in held:
        keeper.ack(each)
    keeper.send(f"/queue/{moves}", "3", persistent="true")
    assert flagged(keeper.take()) == [("3", False)]
    assert keeper.has_no_more()


@contextmanager
def _late_to_finish(node):
    """It tells other nodes only at the end that it has told them of all that its consumers hold."""
    peers, late = node.node.broker.placement.peers, []
    send = peers.send

    def send_or_keep(session, message_type, *fields):
        message = (session, message_type, *fields)
        late.append(message) if message_type is PeerMessageType.EPOCH_DONE else send(*message)

    peers.send = send_or_keep
    yield
    del peers.send
    node.look(lambda: [send(*each) for each in late])


def _queue_with_owners(prefix, **owners):
    """A queue that has these owners, each by the names of the nodes that run then."""

    def owner(queue, nodes):
        return NodeMembers(0, [NodeMember(each, each) for each in nodes], "").owner_of(f"queue://{queue}")

    names = (f"{prefix}.{number}" for number in count())
    return next(each for each in names if all(owner(each, nodes) == wanted for nodes, wanted in owners.items()))


@pytest.mark.parametrize("holder", ["a", "b"])
def test_what_comes_back_to_a_home_that_has_not_taken_the_log_yet_is_flagged(broker, client, name, holder):
    queue = broker.queue_at("a", name)
    consumer = client(holder)
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    consumer.send(f"/queue/{queue}", "held", persistent="true")
    consumer.take()
    homes, log = broker["a"].node.broker.placement, broker["a"].node.broker.queues[f"queue://{queue}"]
    entered = homes.outbound_accounts.of(log.name)

    def between_two_homes():
        """The log is at home here from now on, and what the store and other nodes know of it is not read yet."""
        homes.outbound_handoff.on_handed_off(log)
        log.is_remote = True
        log.release_ownership()

    broker["a"].look(between_two_homes)
    assert broker["a"].look(lambda: len(entered.unacked) + len(homes.remote_unacked.seqs(log.name))) == 1
    consumer.break_off()
    wait_until(
        lambda: not broker["a"].look(lambda: len(entered.unacked) + len(homes.remote_unacked.seqs(log.name))),
        "it comes back",
    )
    broker["a"].look(homes.handoff_in.take_over)
    taker = client("a")
    taker.subscribe(f"/queue/{queue}")
    [message] = taker.take()
    assert (message.body, message.headers.get("redelivered")) == ("held", "true")


def test_what_a_killed_node_held_comes_back_flagged_also_when_its_log_moves_before_it_is_expelled(broker, client, name):
    queue = broker.queue_at("a", name)
    broker.stop("a")  # so that it is at home at b, until a is back
    broker.start("c")
    keeper, taker = client("c"), client("b")
    home = broker["b"] if _is_home(broker, "b", queue) else broker["c"]
    if home is broker["c"]:
        keeper, taker = taker, keeper
    lost, stays = ("c", "b") if home is broker["b"] else ("b", "c")
    keeper.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=3)
    for number in range(6):
        keeper.send(f"/queue/{queue}", str(number), persistent="true")
    held = {each.body for each in keeper.take(3)}
    taker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    taker.take()
    broker.crash(lost)
    broker.start("a")
    other = client("a")
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    assert held <= {each.body for each in other.take(5) if "redelivered" in each.headers}
    assert stays in broker.members()


def test_what_clients_do_while_their_log_leaves_for_a_node_that_joins_holds_there(broker, client, name):
    queue = broker.queue_at("b", name)
    broker.stop("b")
    keeper = client("a")
    keeper.subscribe(f"/queue/{queue}", ack="client-individual")
    for body in ("acknowledged", "given back"):
        keeper.send(f"/queue/{queue}", body, persistent="true")
    held, _ = keeper.take(2)
    log = broker["a"].node.broker.queues[f"queue://{queue}"]
    with _slow_to_store(broker["a"], 0.3), ThreadPoolExecutor() as pool:
        joining = pool.submit(broker.start, "b")
        wait_until(lambda: log.suspend_reasons, "its home is about to be b")
        keeper.ack(held, wait=False)
        wait_until(lambda: broker["a"].look(lambda: log.in_flight) < 2, "it is acknowledged")
        keeper.break_off()
        wait_until(lambda: broker["a"].look(lambda: not log.consumers), "its consumer is gone")
        assert log.suspend_reasons, "all that was before its home changed"
        joining.result()
        taker = client("b")
        taker.subscribe(f"/queue/{queue}", ack="client-individual")
        assert flagged(taker.take()) == [("given back", True)]
        assert taker.has_no_more()


def test_a_queue_that_comes_to_be_while_another_node_joins_is_given_out_by_its_home_alone(broker, client, name):
    known, new = broker.queue_at("b", name), broker.queue_at("b", f"{name}.new")
    broker.stop("b")
    keeper = client("a")
    keeper.subscribe(f"/queue/{known}", id="known")
    queues = broker["a"].node.broker.queues
    with _slow_to_store(broker["a"], 0.3), ThreadPoolExecutor() as pool:
        joining = pool.submit(broker.start, "b")
        wait_until(lambda: queues[f"queue://{known}"].suspend_reasons, "its home is about to be b")
        keeper.subscribe(f"/queue/{new}", id="new", wait=False, ack="client-individual")
        keeper.send(f"/queue/{new}", "early", wait=False, persistent="true")
        wait_until(lambda: queues.get(f"queue://{new}") is not None, "it is there")
        assert queues[f"queue://{known}"].suspend_reasons, "before its home changed"
        joining.result()
    assert broker["a"].look(lambda: queues[f"queue://{new}"].is_remote)
    client("b").send(f"/queue/{new}", "late", persistent="true")
    assert flagged(keeper.take(2)) == [("early", False), ("late", False)]


def test_what_waits_for_a_client_as_its_log_comes_home_is_given_out_when_that_client_is_gone(broker, client, name):
    queue = broker.queue_at("a", name)
    consumer = client("b")
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    homes = broker["b"].node.broker.placement
    homes.outbound_deliveries.deliver_due = lambda: None
    client("b").send(f"/queue/{queue}", "waits", persistent="true")
    account = homes.outbound_accounts.of(f"queue://{queue}")
    wait_until(lambda: broker["b"].look(lambda: len(account.unacked)), "it came, and its client cannot have it yet")
    broker.stop("a")
    wait_until(
        lambda: not broker["b"].look(lambda: broker["b"].node.broker.queues[f"queue://{queue}"].is_remote), "it is home"
    )
    consumer.break_off()
    log = broker["b"].node.broker.queues[f"queue://{queue}"]
    wait_until(lambda: not broker["b"].look(lambda: log.consumers), "its consumer is gone")
    del homes.outbound_deliveries.deliver_due
    taker = client("b")
    taker.subscribe(f"/queue/{queue}")
    assert taker.bodies() == ["waits"]


@contextmanager
def _slow_to_store(node, seconds):
    """The store takes long for what this node writes."""
    store = node.node._store.main
    commit = store.commit

    async def commit_late(*batch):
        await asyncio.sleep(seconds)
        return await commit(*batch)

    store.commit = commit_late
    yield
    del store.commit


@pytest.mark.parametrize("known", [False, True])
def test_what_is_given_back_while_a_home_to_come_does_not_hear_of_it_is_flagged(broker, client, name, known):
    queue = broker.queue_at("a", name)
    consumer = client("b")
    consumer.subscribe(f"/queue/{queue}", ack="client-individual")
    consumer.send(f"/queue/{queue}", "held", persistent="true")
    consumer.take()
    homes, log = broker["a"].node.broker.placement, broker["a"].node.broker.queues[f"queue://{queue}"]

    def between_two_homes():
        """The log is at home here from now on; other nodes have said what they hold of it, or not even that."""
        consumers = list(log.consumers)
        log.is_remote = True
        log.release_ownership()
        if known:
            log.consumers += consumers
        else:
            homes.inbound_consumers.release_log(log)

    broker["a"].look(between_two_homes)
    without_links(broker["b"], True)
    [other] = homes.peers.other_sessions
    wait_until(lambda: not broker["a"].look(lambda: homes.peers.is_linked(other)), "the link is lost")
    consumer.break_off()
    accounts = broker["b"].node.broker.placement.outbound_accounts
    wait_until(lambda: not broker["b"].look(lambda: accounts.of(log.name).unacked), "it is given back")
    without_links(broker["b"], False)
    taker = client("a")
    taker.subscribe(f"/queue/{queue}")
    assert flagged(taker.take()) == [("held", True)]


def test_a_log_that_is_taken_home_as_it_is_about_to_leave_again_leaves(broker, client, name):
    """Its home was expelled, and is there again before this node has read what the store holds."""
    queue = broker.queue_at("a", name)
    consumer = client("b")
    consumer.subscribe(f"/queue/{queue}")
    homes, log = broker["b"].node.broker.placement, broker["b"].node.broker.queues[f"queue://{queue}"]
    both, here = homes.peers.members, homes.peers.session
    tenure = log.handoff_count

    async def gone_and_back():
        await homes.coordinator.on_members_changed(
            NodeMembers(both.epoch + 1, [each for each in both if each.session == here], here)
        )
        while broker["b"].node.broker.commits.first._reads:
            await asyncio.sleep(0)
        assert log.is_remote, "the store was asked, and has not answered"
        await homes.coordinator.on_members_changed(NodeMembers(both.epoch + 2, both, here))

    broker["b"].do(gone_and_back)
    assert (log.is_remote, log.suspend_reasons, log.handoff_count) == (True, set(), tenure + 2)


def _is_home(broker, node, queue):
    """Whether a queue of this name is, or would be, at home at a node."""
    return broker[node].look(lambda: broker[node].node.broker.placement.is_local(f"queue://{queue}"))
