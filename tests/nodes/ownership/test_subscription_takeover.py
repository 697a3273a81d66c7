"""Who wants a named subscription whose consumer is at another node, which may be gone, or cannot say."""

import itertools
import threading
from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.nodes.delivery import subscription_takeover
from brokerapp.nodes.delivery.subscription_takeover import SubscriptionTakeover
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.system import clock
from tests.nodes.conftest import several_nodes
from tests.nodes.parts import FakeTransport, peers_of, placement_of
from tests.waiting import wait_until

LOG = "subscription://client:news"


class Nodes:
    """What the home `h` of a log says to others, which answer when they are made to."""

    def __init__(self):
        self.said, self.later = [], []
        self.now_ms, self.renewed, self.queues = 0, [], {}
        self.lost, self.tried, self.handoff = [], [], SimpleNamespace(all_done=True)
        peers = peers_of("h", [], lambda *said: self.said.append(said), self.renewed.append)
        self.known = NodeRequests(peers=peers)
        self.contending = SubscriptionTakeover(
            context=SimpleNamespace(timers=SimpleNamespace(at=self._later)), peers=peers, requests=self.known,
            queues=self.queues, outbound_consumers=None, handoff=self.handoff,
        )  # fmt: skip
        self.contending._sessions_maybe_consuming = lambda _log: self.lost

    def _later(self, at_ms, then):
        self.later.append((at_ms, then))

    def log(self, *nodes):
        """One with a consumer at each of these."""
        self.queues[LOG] = SimpleNamespace(name=LOG, consumers=[SimpleNamespace(owner_session=each) for each in nodes])
        return self.queues[LOG]

    def come(self, key, *nodes, at="c", id=1):
        """A consumer at a node wants the log, which these have."""
        rivals = self.contending.other_consumers(self.log(*nodes), at=at)
        self.contending.attach_or_refuse((at, key, LOG), id, rivals, "taken", lambda: self.tried.append((at, key)))

    def answer(self, session, refusal=""):
        """A node that was asked says this."""
        *_, id = (facts[0] for to, word, *facts in self.said if to == session and word is PeerMessageType.IS_CONSUMED)
        self.known.on_confirmed(session, id, refusal)

    def leave(self, session):
        """A node is a member no more."""
        self.lost = [each for each in self.lost if each != session]
        if (log := self.queues.get(LOG)) is not None:
            log.consumers = [each for each in log.consumers if each.owner_session != session]

    def wait(self):
        """Until what was put off is due; how long that was."""
        later, self.later[:] = list(self.later), []
        began = self.now_ms
        for at_ms, then in later:
            self.now_ms = max(self.now_ms, at_ms)
            then()
        return self.now_ms - began

    @property
    def told(self):
        """What those that came were told."""
        return [(to, *facts) for to, word, *facts in self.said if word is PeerMessageType.CONFIRMED]


@pytest.fixture
def nodes(monkeypatch):
    found = Nodes()
    monkeypatch.setattr(clock, "now_ms", lambda: found.now_ms)
    return found


def test_who_comes_is_refused_when_the_node_of_the_one_consumer_says_that_it_is_there(nodes):
    nodes.come(7, "a")
    assert nodes.told == []
    nodes.answer("a", "it is consumed")
    assert nodes.told == [("c", 1, "taken")]
    assert not nodes.tried


@pytest.mark.parametrize("rival", ["", "c"])
def test_and_at_once_when_that_is_here_or_at_the_same_node(nodes, rival):
    nodes.come(7, rival)
    assert nodes.told == [("c", 1, "taken")]


@pytest.mark.parametrize("lost", [False, True])
def test_who_comes_waits_for_a_node_that_does_not_answer_and_tries_again_when_that_is_gone(nodes, lost):
    nodes.lost = ["a"] if lost else []
    nodes.come(7, *([] if lost else ["a"]))
    nodes.wait()
    assert (nodes.tried, nodes.told) == ([], [])
    nodes.known.on_member_lost("a")
    nodes.wait()
    assert nodes.tried == [], "the members do not say so yet"
    nodes.leave("a")
    nodes.wait()
    assert nodes.tried == [("c", 7)]
    nodes.come(7, "a", id=2)  # the members do not say so yet: it looks again in a moment, and asks nobody
    assert nodes.later


def test_the_rest_of_its_node_waits_for_no_such_answer(nodes):
    nodes.come(7, "a")
    went_on = []
    nodes.known.when_confirmed(lambda: went_on.append(True))
    assert went_on


def test_who_wants_it_no_longer_is_answered_and_does_not_come_to_be_a_consumer(nodes):
    nodes.come(7, "a")
    nodes.contending.on_detached(("c", 7, LOG))
    assert nodes.told == [("c", 1, "")]
    nodes.known.on_member_lost("a")
    nodes.wait()
    assert not nodes.tried


def test_nor_does_who_says_it_again_after_its_link_was_lost_do_so_twice(nodes):
    nodes.come(7, "a")
    nodes.contending.on_link_down("c")
    nodes.come(7, "a", id=2)
    nodes.known.on_member_lost("a")
    nodes.leave("a")
    nodes.wait()
    assert nodes.tried == [("c", 7)]


def test_who_says_it_again_in_another_epoch_is_answered_for_the_first_time(nodes):
    nodes.come(7, "a")
    nodes.come(7, "a", id=2)
    assert nodes.told == [("c", 1, "")]
    nodes.answer("a", "it is consumed")
    assert nodes.told[1:] == [("c", 2, "taken")]


@pytest.mark.parametrize("agree", [True, False])
def test_a_home_that_counts_a_consumer_whose_node_denies_it_asks_more_and_more_rarely_and_then_counts_anew(
    nodes, caplog, agree
):
    nodes.handoff.all_done = agree
    nodes.come(7, "a")
    pauses = []
    while nodes.now_ms < subscription_takeover.DENIED_MS:
        assert not nodes.renewed
        nodes.answer("a")
        pauses.append(nodes.wait())
    assert pauses[:4] == [50, 100, 200, 400]
    assert max(pauses) == subscription_takeover.LONGEST_RETRY_MS
    assert (nodes.renewed, "does not confirm it" in caplog.text) == ((["a"], True) if agree else ([], False))
    nodes.leave("a")  # what it says anew
    nodes.answer("a")
    nodes.wait()
    assert nodes.tried == [("c", 7)]


def test_however_often_one_comes_its_rivals_are_asked_once_at_a_time(nodes):
    for key in range(3):
        nodes.come(key, "a", id=key + 1)
        nodes.contending.on_detached(("c", key, LOG))
    nodes.come(3, "a", id=4)
    nodes.answer("a")
    nodes.wait()
    assert [word for _, word, *_ in nodes.said].count(PeerMessageType.IS_CONSUMED) == 2
    nodes.answer("a", "it is consumed")
    assert nodes.told[-1] == ("c", 4, "taken")
    assert (nodes.later, nodes.contending._queries) == ([], {})


def test_a_node_says_whether_its_clients_consume_a_log_that_is_at_home_elsewhere():
    queues, said = {}, []
    homes = placement_of("a", queues=queues)
    homes.coordinator.attach_transport(FakeTransport(lambda *facts: said.append(facts)))
    homes.coordinator.join(NodeMembers(1, [NodeMember("a", "a"), NodeMember("h", "h")], "a"))
    said.clear()
    log = queues[LOG] = SimpleNamespace(name=LOG, is_remote=True)
    homes.subscription_takeover.on_query("h", 1, LOG)
    homes.outbound_accounts.of(LOG).consumers["somebody"] = True
    homes.subscription_takeover.on_query("h", 2, LOG)
    log.is_remote = False  # it came home: who asked is its home no more
    homes.subscription_takeover.on_query("h", 3, LOG)
    assert [facts[2:] for facts in said] == [(1, ""), (2, "it is consumed"), (3, "")]


def test_who_fails_over_to_a_durable_subscription_of_a_node_that_died_is_served_when_that_is_known(redis_url, name):
    with several_nodes(redis_url, "a", "b", "c") as broker:
        shares_id = {"client-id": name, "shared-client-id": "true"}
        home = broker["b"].node.broker.placement
        of_b = (each for each in (f"{name}.{n}" for n in itertools.count()) if home.is_local(str(_log(name, each))))
        durables = {node: next(of_b) for node in "bc"}  # at home at b
        holder, newcomers = broker["a"].client(**shares_id), {node: broker[node].client(**shares_id) for node in "bc"}

        def subscribe(client, durable):
            headers = {"activemq.subscriptionName": durable, "activemq.shared": "false"}
            client.subscribe(f"/topic/{durable}", id=durable, **headers)

        for each in durables.values():
            subscribe(holder, each)
        broker.crash("a")
        at_once = [threading.Thread(target=subscribe, args=(newcomers[at], durables[at])) for at in durables]
        for each in at_once:
            each.start()
        for each in at_once:
            each.join()
        wait_until(lambda: broker.members() == {"b", "c"}, "a is taken for dead", 60)
        for at, durable in durables.items():
            newcomers[at].send(f"/topic/{durable}", at, persistent="true")
            assert newcomers[at].bodies() == [at]
            assert newcomers[at].errors.empty()


def test_a_consumer_that_its_node_knows_nothing_of_is_in_nobodys_way_for_ever(redis_url, name, monkeypatch):
    monkeypatch.setattr(subscription_takeover, "DENIED_MS", 100)
    with several_nodes(redis_url, "a", "b") as broker:
        shares_id, home = {"client-id": name, "shared-client-id": "true"}, broker["a"].node.broker.placement
        at_a = (each for each in (f"{name}.{n}" for n in itertools.count()) if home.is_local(str(_log(name, each))))
        durable = next(at_a)
        asked = {"id": durable, "activemq.subscriptionName": durable, "activemq.shared": "false"}
        holder, newcomer = broker["b"].client(**shares_id), broker["a"].client(**shares_id)
        holder.subscribe(f"/topic/{durable}", **asked)
        account = broker["b"].node.broker.placement.outbound_accounts.of(str(_log(name, durable)))
        broker["b"].look(account.consumers.clear)  # without a word to its home
        newcomer.subscribe(f"/topic/{durable}", **asked)
        newcomer.send(f"/topic/{durable}", "served", persistent="true")
        assert newcomer.bodies() == ["served"]


def _log(client_id, name):
    return SubscriptionIdentity(client_id, name, (Destination.topic(name),)).log(1)
