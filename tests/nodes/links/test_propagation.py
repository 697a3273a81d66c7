"""Test what all nodes must know, how long a change waits for them, and shared counts."""

from types import SimpleNamespace

from brokerapp.core.dispatch.counters import DestinationCounters
from brokerapp.model.definitions import VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.message import BodySizes
from brokerapp.model.stats_records import DestinationStats
from brokerapp.nodes.delivery.selector_interest import SelectorInterest
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.membership.stats_aggregation import StatsAggregation, total
from brokerapp.selectors import compile_selector
from tests.nodes.parts import peers_of


def test_nobody_waits_for_a_node_that_left_before_the_logs_followed():
    said, answers = [], []
    requests = NodeRequests(peers=peers_of("here", [], lambda session, *_: said.append(session)))
    requests.on_member_lost("left")
    requests.send(["left", "there"], PeerMessageType.LOGS, ([],), answers.append)
    assert said == ["there"]
    requests.on_confirmed("there", 1, "")
    requests.send(["left"], PeerMessageType.LOGS, ([],), answers.append)
    assert answers == ["", ""]


def test_any_number_of_those_who_wait_go_on_with_the_answer_whatever_becomes_of_one():
    requests, answered = NodeRequests(peers=peers_of("a", ["b"], lambda *_: None)), []
    requests.send(["b"], PeerMessageType.LOGS, ([],), lambda _: 1 / 0)
    requests.send(["b"], PeerMessageType.LOGS, ([],), lambda _: None)
    for number in range(2_000):
        requests.when_confirmed(lambda number=number: answered.append(number))
    requests.on_confirmed("b", 1, "")
    assert answered == []
    requests.on_member_lost("b")
    assert answered == list(range(2_000))


def wanting(*consumers):
    """What a node knows to be wanted, whose one queue has these consumers; the queue, and what others are told."""
    queue = Destination.queue("Consumer.c.news.x")
    log = SimpleNamespace(name=str(queue), destination=queue)
    topics = (VirtualTopic(name="news.>", prefix="Consumer.*.", selector_aware=True),)
    said, found = [], list(consumers)
    peers = peers_of("a", ["b"], lambda _session, _word, _id, *facts: said.append(facts))
    wanted = SelectorInterest(
        peers=peers, requests=NodeRequests(peers=peers), queues=[log],
        routing=SimpleNamespace(table=SimpleNamespace(definitions=SimpleNamespace(virtual_destinations=topics))),
        outbound_consumers=SimpleNamespace(known_consumers=lambda _log: found),
    )  # fmt: skip
    return wanted, log, found, said


def test_a_node_that_was_told_what_is_wanted_as_it_came_is_told_when_that_ends():
    consumer = SimpleNamespace(owner_session="", consumer_selector=compile_selector("a = 1"))
    wanted, log, consumers, said = wanting(consumer)
    wanted.introduce("b")
    assert said.pop() == (True, [(log.name, ["a = 1"])])
    wanted.on_consumers_changed(log)
    assert said == []
    consumers.clear()
    wanted.on_consumers_changed(log)
    assert said == [(False, [(log.name, [])])]


def test_a_node_that_comes_again_is_told_of_what_began_after_that_as_anew():
    consumer = SimpleNamespace(owner_session="", consumer_selector=compile_selector("a = 1"))
    wanted, log, consumers, said = wanting(consumer)
    wanted.introduce("b")
    consumers.clear()  # while this node is alone: nobody is told
    wanted.introduce("b")
    assert said.pop() == (True, [])
    consumers.append(consumer)
    wanted.on_consumers_changed(log)
    assert said.pop() == (False, [(log.name, ["a = 1"])])


def test_what_is_wanted_at_a_node_counts_until_it_is_gone():
    wanted, log, _, _ = wanting()
    wanted.on_selectors("b", 1, False, [(log.name, ["a = 1", None])])
    assert wanted.selectors_of(log) == {compile_selector("a = 1"), None}
    wanted.on_selectors("b", 2, True, [])
    assert wanted.selectors_of(log) == set()
    wanted.on_selectors("c", 3, False, [(log.name, [None])])
    wanted.on_member_removed("c")
    assert wanted.selectors_of(log) == set()


def test_of_what_several_nodes_counted_the_sums_the_least_and_the_greatest_are_told():
    topic = Destination.topic("t")
    own = DestinationStats(topic, EnqueueCount=0, ConsumerCount=1)
    one = DestinationStats(topic, EnqueueCount=2, MinMessageSize=5, MaxMessageSize=9, ConsumerCount=2, QueueSize=7)
    two = DestinationStats(topic, EnqueueCount=1, MinMessageSize=3, MaxMessageSize=3, InFlightCount=4)
    found = total(own, [one, two])
    assert (found.EnqueueCount, found.MinMessageSize, found.MaxMessageSize) == (3, 3, 9)
    assert (found.ConsumerCount, found.InFlightCount, found.QueueSize) == (3, 4, 0)
    assert own.EnqueueCount == 0


def test_of_a_queue_its_home_alone_knows_who_consumes_it():
    queue = Destination.queue("q")
    own, other = DestinationStats(queue, ConsumerCount=3), DestinationStats(queue, ConsumerCount=1, ProducerCount=2)
    assert (total(own, [other]).ConsumerCount, total(own, [other]).ProducerCount) == (3, 2)


def test_what_a_node_counted_its_home_counts_on_when_it_is_gone_and_tells_when_the_home_is_another():
    queue, stats, told = Destination.queue("q"), DestinationCounters(), []
    peers = SimpleNamespace(session="a", here=True, send=lambda _session, _word, rows: told.extend(rows))
    peers.is_local = lambda _log: peers.here
    peers.owner_of = lambda _log: "a" if peers.here else "c"
    context, gauges = SimpleNamespace(counters=stats), SimpleNamespace(update=lambda _stats: None)
    shares, own = StatsAggregation(context=context, peers=peers, gauges=gauges), stats.of(queue)
    own.count_arrivals(BodySizes(1, 5, 5, 5))
    part = DestinationStats(queue, ProducerCount=1)
    part.count_arrivals(BodySizes(2, 10, 3, 7))
    shares.on_stats("b", [part.to_json()])
    for _ in range(2):
        found = shares.with_remote_parts(own)
        assert (found.EnqueueCount, found.EnqueueBytes, found.MinMessageSize, found.MaxMessageSize) == (3, 15, 3, 7)
        shares.on_member_removed("b")
    assert (found.ProducerCount, shares.with_remote_parts(own).ProducerCount) == (0, 0)
    peers.here = False
    shares.on_logs_reassigned()
    shares.report(stats.take_changes()[0])
    assert [each["EnqueueCount"] for each in told] == [3]
