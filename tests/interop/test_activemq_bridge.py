"""Test what is forwarded over a duplex bridge between Sluice and ActiveMQ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.store.server.embedded import EmbeddedStore
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_activemq]
QUICK = "?initialReconnectDelay=100&useExponentialBackOff=false"
OURS, THEIRS = "here_%{}", "classic"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module", params=["stomp", "tcp"], ids=["STOMP", "OpenWire"])
def scheme(request) -> str:
    """By what the bridge goes."""
    return request.param


@pytest.fixture(scope="module")
def activemq(tmp_path_factory, scheme) -> Iterator[ActiveMQ]:
    """It is started after ours, which waits for it."""
    running = ActiveMQ(tmp_path_factory.mktemp("activemq"))
    running.plain(THEIRS, useVirtualDestSubs="true")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def ours(store, activemq, scheme) -> Iterator[RunningNode]:
    """Ours, with the bridge."""
    connector = NetworkConnector(
        "bridge", f"static:({activemq.uri(scheme)}){QUICK}",
        statically_included=(Destination.queue("always"),), options=(("duplex", "true"),),
    )  # fmt: skip
    config = replace(default_config(OURS.format(scheme), 0), network_connectors=(connector,))
    node = RunningNode(config, store.url)
    activemq.start()
    wait_until(lambda: bridged(node), "the bridge")
    yield node
    node.stop()


def bridged(node: RunningNode) -> bool:
    return bool(node.look(lambda: node.node.network.connections[0].bridges))


def destinations_of(node: RunningNode, way: int) -> list[str]:
    """What the bridge from ours (0) or to it (1) consumes."""
    return node.look(lambda: [str(each) for each in node.node.network.connections[0].bridges[way].destinations])


def wait_for_demand(node: RunningNode, way: int, destination: str) -> None:
    wait_until(lambda: destination in destinations_of(node, way), f"demand for {destination}")


def wait_for_consumers(client: StompClient, topic: str, count: int) -> None:
    """Until the broker of this client has so many subscribers of a topic."""
    client.subscribe(f"/topic/ActiveMQ.Advisory.Consumer.Topic.{topic}", id="advisories")
    while int(client.take()[0].headers["consumerCount"]) < count:
        pass
    client.unsubscribe("advisories")


@pytest.fixture
def name(request) -> str:
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")


@pytest.fixture
def client_at(ours, activemq) -> Iterator[Callable[..., StompClient]]:
    """Makes clients of ours (0) or ActiveMQ (1)."""
    clients = []

    def connect(which: int, **headers: str) -> StompClient:
        clients.append(StompClient((ours, activemq)[which].port, **headers))
        return clients[-1]

    yield connect
    for client in clients:
        if client.connection.is_connected():
            client.connection.disconnect()


BOTH_WAYS = pytest.mark.parametrize(("here", "there"), [(0, 1), (1, 0)], ids=["to it", "from it"])


def test_the_bridge_knows_the_name_of_an_activemq_that_came_later(ours):
    assert ours.look(lambda: ours.node.network.connections[0].remote) == THEIRS


@BOTH_WAYS
def test_a_message_of_a_queue_crosses_with_what_its_sender_said(ours, client_at, name, here, there):
    queue, consumer, sender = f"/queue/{name}", client_at(there), client_at(here)
    consumer.subscribe(queue)
    wait_for_demand(ours, here, f"queue://{name}")
    said = {
        "persistent": "true", "priority": "7", "correlation-id": "c:1", "type": "order", "reply-to": "/queue/answers",
        "expires": "99999999999999", "colour": "a:b", "timestamp": "12345",
    }  # fmt: skip
    sender.send(queue, "héllo", **said)
    [message] = consumer.take()
    assert message.body == "héllo"
    assert {each: message.headers[each] for each in said} == said
    assert message.headers["destination"] == queue


@BOTH_WAYS
def test_what_waits_crosses_when_somebody_consumes_there_and_what_nobody_wants_stays(
    ours, client_at, name, here, there
):
    queue, consumer, sender = f"/queue/{name}", client_at(there), client_at(here)
    sender.send(queue, "waits", persistent="true")
    consumer.subscribe(queue)
    assert consumer.bodies() == ["waits"]
    consumer.unsubscribe()
    wait_until(lambda: f"queue://{name}" not in destinations_of(ours, here), "the end of the demand")
    sender.send(queue, "stays", persistent="true")
    local = client_at(here)
    local.subscribe(queue)
    assert local.bodies() == ["stays"]


@BOTH_WAYS
def test_subscribers_of_a_topic_at_both_ends_get_a_message_once(ours, client_at, name, here, there):
    clients = [client_at(here), client_at(there), client_at(there)]
    for client in clients:
        client.subscribe(f"/topic/{name}")
    sender = client_at(here)
    wait_for_consumers(sender, name, 2)
    sender.send(f"/topic/{name}", "news")
    sender.send(f"/topic/{name}", "more", persistent="true")
    for client in clients:
        assert client.bodies(2) == ["news", "more"]
        assert client.messages.empty()


def test_a_message_that_came_over_the_bridge_does_not_go_back(ours, client_at, name):
    queue, near, far = f"/queue/{name}", client_at(0), client_at(1)
    for client in (near, far):
        client.subscribe(queue, ack="client-individual", prefetch=1)
    for way in (0, 1):
        wait_for_demand(ours, way, f"queue://{name}")
    sender = client_at(0)
    for number in range(20):
        sender.send(queue, str(number), persistent="true")
    got = []
    wait_until(lambda: take_in_turn((near, far), got) == 20, "20 messages")
    assert sorted(got, key=int) == [str(number) for number in range(20)]


def take_in_turn(clients, got: list[str]) -> int:
    for client in clients:
        while not client.messages.empty():
            [message] = client.take()
            got.append(message.body)
            client.ack(message)
    return len(got)


@BOTH_WAYS
def test_a_body_of_bytes_stays_one_and_a_text_stays_one(ours, client_at, name, here, there):
    queue, consumer, sender = f"/queue/{name}", client_at(there), client_at(here)
    consumer.connection.transport._StompConnection__decode = False
    consumer.subscribe(queue)
    wait_for_demand(ours, here, f"queue://{name}")
    sender.connection.auto_content_length = False
    sender.send(queue, "text")
    sender.connection.auto_content_length = True
    sender.send(queue, b"by\0tes")
    text, of_bytes = consumer.take(2)
    assert "content-length" not in text.headers
    assert of_bytes.headers["content-length"] == "6"


@BOTH_WAYS
def test_a_durable_subscription_there_gets_what_was_sent_here_while_it_was_away(ours, client_at, name, here, there):
    durable = {"activemq.subscriptionName": name}
    subscriber = client_at(there, **{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", **durable)
    sender = client_at(here)
    wait_for_consumers(sender, name, 1)
    subscriber.leave()
    sender.send(f"/topic/{name}", "while away", persistent="true")
    again = client_at(there, **{"client-id": name})
    again.subscribe(f"/topic/{name}", **durable)
    assert again.bodies() == ["while away"]
    again.unsubscribe()
    again.frame("UNSUBSCRIBE", id="-", **durable)
    wait_until(lambda: f"topic://{name}" not in destinations_of(ours, here), "the end of the demand")


def test_a_map_of_an_activemq_comes_as_json_and_goes_back_as_a_map(ours, client_at, name):
    given, back = f"/queue/{name}.given", f"/queue/{name}.back"
    document = '{"map":{"entry":[{"string":["a","b"]},{"string":"n","int":5}]}}'
    near, far = client_at(0), client_at(1)
    near.connection.auto_content_length = far.connection.auto_content_length = False  # with it, it would be bytes
    near.subscribe(given, id="given", transformation="jms-map-json")
    wait_for_demand(ours, 1, given.replace("/queue/", "queue://"))
    far.send(given, document, transformation="jms-map-json")
    [message] = near.take()
    assert (message.body, message.headers["transformation"]) == (document, "jms-map-json")
    far.subscribe(back, id="as a map", transformation="jms-map-xml")
    wait_for_demand(ours, 0, back.replace("/queue/", "queue://"))
    near.send(back, document, transformation="jms-map-json")
    assert "<int>5</int>" in far.bodies()[0]


def test_a_selector_of_a_consumer_there_is_not_asked_here_and_what_it_does_not_want_waits_there(ours, client_at, name):
    queue, consumer, sender = f"/queue/{name}", client_at(1), client_at(0)
    consumer.subscribe(queue, selector="colour = 'red'")
    wait_for_demand(ours, 0, f"queue://{name}")
    for colour in ("blue", "red"):
        sender.send(queue, colour, persistent="true", colour=colour)
    assert consumer.bodies() == ["red"]
    everything = client_at(1)
    everything.subscribe(queue)
    assert everything.bodies() == ["blue"]


def test_messages_of_a_group_that_went_to_an_activemq_stay_with_one_consumer(ours, client_at, name):
    queue, consumers, sender = f"/queue/{name}", [client_at(1), client_at(1)], client_at(0)
    for each in consumers:
        each.subscribe(queue)
    wait_for_demand(ours, 0, f"queue://{name}")
    for number in range(10):
        sender.send(queue, str(number), persistent="true", JMSXGroupID="g")
    wait_until(lambda: sum(each.messages.qsize() for each in consumers) == 10, "10 messages")
    assert sorted(each.messages.qsize() for each in consumers) == [0, 10]


@BOTH_WAYS
def test_who_gets_a_request_of_the_other_broker_answers_it(ours, client_at, name, here, there):
    asking, answering = client_at(here), client_at(there)
    answering.subscribe(f"/queue/{name}")
    wait_for_demand(ours, here, f"queue://{name}")
    before = set(destinations_of(ours, there))
    asking.subscribe("/temp-queue/answers", id="answers")
    wait_until(lambda: set(destinations_of(ours, there)) - before, "demand for the answers")
    asking.send(f"/queue/{name}", "?", reply_to="/temp-queue/answers")
    [request] = answering.take()
    answering.send(request.headers["reply-to"], "!")
    assert asking.bodies() == ["!"]


@pytest.mark.parametrize(
    "scheme", [pytest.param("stomp", marks=pytest.mark.long), "tcp"], ids=["STOMP", "OpenWire"], indirect=True
)
def test_an_activemq_without_advisories_gets_what_is_included_statically(store, tmp_path, scheme):
    silent = ActiveMQ(tmp_path)
    silent.plain("silent", advisorySupport="false")
    silent.start()
    connector = NetworkConnector(
        "to-silent", f"static:({silent.uri(scheme)}){QUICK}",
        statically_included=(Destination.queue("always"),), options=(("duplex", "true"),),
    )  # fmt: skip
    node = RunningNode(replace(default_config(f"static-{scheme}", 0), network_connectors=(connector,)), store.url)
    try:
        wait_until(lambda: bridged(node), "the bridge")
        known_as = f"127.0.0.1:{silent.port}" if scheme == "stomp" else "silent"
        assert node.look(lambda: node.node.network.connections[0].remote) == known_as
        for sender, consumer in ((node.port, silent.port), (silent.port, node.port)):
            client, other = StompClient(sender), StompClient(consumer)
            client.send("/queue/always", "crosses", persistent="true")
            other.subscribe("/queue/always")
            assert other.bodies() == ["crosses"]
            other.leave()
            client.leave()
    finally:
        node.stop()
        silent.stop()


def set_aside(node: RunningNode) -> set[str]:
    """Return the destinations of which the bridge has set messages aside."""
    demand = node.ask(lambda admin: admin.networks.demand("guarded"))
    return {each.destination for rows in demand.values() for each in rows if each.aside}


@pytest.mark.parametrize(
    "scheme", [pytest.param("stomp", marks=pytest.mark.long), "tcp"], ids=["STOMP", "OpenWire"], indirect=True
)
def test_what_an_activemq_refuses_stays_where_it_is_while_all_else_crosses(store, tmp_path, scheme):
    """For want of rights; or one message only, as one of the queues that it goes to there is full.

    Where that is full an ActiveMQ refuses nothing to its own kind of bridge: the message waits there for its answer.
    """
    refuses_odd = scheme == "stomp"
    entries = "".join(
        f'<authorizationEntry {kind}="{name}" read="{read}" write="{write}" admin="g"/>'
        for kind, name, read, write in (
            ("queue", "open.>", "g", "g"),
            ("queue", "full", "g", "g"),
            ("queue", "closed.>", "g", "nobody"),
            ("queue", "secret.>", "nobody", "g"),
            ("queue", "Sluice.Bridge.>", "g", "g"),
            ("topic", "ActiveMQ.Advisory.>", "g", "g"),
        )
    )
    plugins = f"""<plugins>
      <simpleAuthenticationPlugin><users><authenticationUser username="u" password="p" groups="g"/></users>
      </simpleAuthenticationPlugin>
      <authorizationPlugin><map><authorizationMap><authorizationEntries>{entries}</authorizationEntries>
      </authorizationMap></map></authorizationPlugin></plugins>
      <destinationPolicy><policyMap><policyEntries>
        <policyEntry queue="full" producerFlowControl="true" memoryLimit="1kb">
          <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
      </policyEntries></policyMap></destinationPolicy>
      <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
        <compositeQueue name="open.q" forwardOnly="false"><forwardTo>
          <filteredDestination selector="odd = 'yes'" queue="full"/></forwardTo></compositeQueue>
      </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
      <systemUsage><systemUsage sendFailIfNoSpace="true"/></systemUsage>"""
    theirs = ActiveMQ(tmp_path)
    theirs.plain(THEIRS, plugins=plugins)
    options = (("duplex", "true"), ("userName", "u"), ("password", "p"), ("prefetchSize", "3"))
    connector = NetworkConnector("guarded", f"static:({theirs.uri(scheme)}){QUICK}", options=options)
    ours = RunningNode(
        replace(default_config(f"guarded-{next(_numbers)}", 0), network_connectors=(connector,)), store.url
    )
    clients = []
    try:
        theirs.start()
        wait_until(lambda: ours.look(lambda: ours.node.network.connections[0].bridges), "the bridge")
        there = StompClient(theirs.port, login="u", passcode="p")
        here = StompClient(ours.port)
        clients += [there, here]
        for id, queue in enumerate(("closed.q", "open.q")):
            there.subscribe(f"/queue/{queue}", id=str(id))
        for id, queue in enumerate(("secret.r", "open.r")):
            here.subscribe(f"/queue/{queue}", id=str(id))
        for queue in ("closed.q", "open.q", "closed.q", "open.q"):
            here.send(f"/queue/{queue}", queue, persistent="true")
        for queue in ("secret.r", "open.r"):
            there.send(f"/queue/{queue}", queue, persistent="true")
        there.send("/queue/full", "x" * 2_000, persistent="true")
        here.send("/queue/open.q", "odd", persistent="true", odd="yes")
        unreadable = {"JMSXGroupSeq": "first"}  # at which it would end the connection
        later = [str(number) for number in range(10)]  # more than the bridge is given at a time
        for each in later:
            here.send("/queue/open.q", each, persistent="true", **unreadable)
        taken = ["open.q", "open.q", *([] if refuses_odd else ["odd"]), *later]
        assert there.bodies(len(taken)) == taken
        assert here.bodies(1) == ["open.r"]
        wait_until(lambda: ours.depth("open.q") == 1, "the acknowledgements")
        assert ours.bodies("open.q") == ["odd"]
        assert ours.bodies("closed.q") == ["closed.q"] * 2
        [way] = ours.ask(lambda admin: admin.networks.stats()).connectors[0].ways
        assert way.connections == 1
        assert any(each in way.last_error for each in ("closed.q", "secret.r", "open.q"))
        full = ["queue://open.q"] if refuses_odd else []
        aside = {"queue://closed.q", "queue://secret.r", *full}
        wait_until(lambda: set_aside(ours) == aside, "what is refused to be set aside")
        [odd] = ours.browse("open.q")
        [why] = ours.ask(lambda admin: admin.networks.diagnose(Destination.queue("open.q"), odd.seq))
        assert ("full" in why["reason"]) is refuses_odd
        there.subscribe("/queue/full", id="full")
        late = ["odd", "odd", "xxx"] if refuses_odd else ["odd", "xxx"]
        assert sorted(each[:3] for each in there.bodies(len(late))) == late, "there is room at last"
    finally:
        for client in clients:
            client.leave()
        ours.stop()
        theirs.stop()
