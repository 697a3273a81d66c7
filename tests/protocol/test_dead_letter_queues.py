"""Test dead letters: their queue by strategy, their headers, and resubmission."""

import time
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.config.reader import parse_config
from brokerapp.model.definitions import DeadLetterStrategy, Definitions, PolicyEntry
from brokerapp.model.destination import MAX_NAME, Destination
from brokerapp.model.settings import DiscardingSettings
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

queue = Destination.queue
DLQ = "ActiveMQ.DLQ"
INDIVIDUAL = DeadLetterStrategy(kind="individual", queue_prefix="DLQ.", queue_suffix=".dead")
POLICIES = (
    PolicyEntry(queue("own.>"), dead_letter=INDIVIDUAL),
    PolicyEntry(queue("DLQ.own.>"), dead_letter=INDIVIDUAL),
    PolicyEntry(queue("Consumer.*.VirtualTopic.own"), dead_letter=INDIVIDUAL),
    PolicyEntry(queue("none.>"), dead_letter=DeadLetterStrategy(kind="discarding")),
    PolicyEntry(queue("all.>"), dead_letter=replace(INDIVIDUAL, process_non_persistent=True)),
    PolicyEntry(queue("short.>"), dead_letter=replace(INDIVIDUAL, expiration=300), expire_messages_period=100),
    PolicyEntry(queue("DLQ.short.>"), expire_messages_period=100),
)


@pytest.fixture(scope="module")
def node(store):
    config = replace(default_config("dead-letters", 0), definitions=Definitions(policies=POLICIES))
    running = RunningNode(replace(config, destinations=(queue(DLQ),)), store.url)
    yield running
    running.stop()


def reject(client, name, *bodies, persistent="true"):
    """These messages are sent to a queue, and rejected by its consumer."""
    for body in bodies:
        client.send(f"/queue/{name}", body, persistent=persistent)
    client.subscribe(f"/queue/{name}", id=name, ack="client-individual")
    for message in client.take(len(bodies)):
        client.nack(message)
    client.unsubscribe(name)


@pytest.mark.scenario("DL-01", "S1-12")
def test_each_strategy_has_its_place(connect, node, name):
    client = connect()
    for place, where in ((f"own.{name}", f"DLQ.own.{name}.dead"), (f"shared.{name}", DLQ)):
        reject(client, place, "a", "b")
        letters = [each for each in node.browse(where) if each.original_destination == f"/queue/{place}"]
        assert [each.body for each in letters] == [b"a", b"b"]
        assert node.numbers(queue(where)).DLQ
    reject(client, f"none.{name}", "a", "b")
    assert node.numbers(queue(f"none.{name}")).DroppedCount == 2


@pytest.mark.scenario("DL-01")
def test_non_persistent_messages_are_kept_where_the_policy_says_so(connect, node, name):
    client = connect()
    reject(client, f"all.{name}", "a", persistent="false")
    [letter] = node.browse(f"DLQ.all.{name}.dead")
    assert letter.headers["originalDeliveryMode"] == "NON_PERSISTENT"
    reject(client, f"own.{name}", "a", persistent="false")
    assert node.numbers(queue(f"own.{name}")).DroppedCount == 1


def test_what_fails_in_a_queue_with_the_longest_name_is_kept_and_the_node_goes_on(connect, node, name):
    client = connect()
    place = f"own.{name}".ljust(MAX_NAME, "x")
    reject(client, place, "a")
    found = node.look(lambda: [log.destination.name for log in node.node.broker.queues])
    [letters] = [each for each in found if each.startswith(f"DLQ.own.{name}")]
    assert node.bodies(letters) == ["a"]


def test_no_name_of_a_log_can_stop_the_committer_however_odd(node):
    assert node.look(lambda: node.node.broker.limits.of_log("queue://" + "x" * 2 * MAX_NAME)) == 0


@pytest.mark.scenario("VT-18", "VT-19", "VT-20")
@pytest.mark.parametrize("topic", ["own", "shared"])
def test_each_failing_copy_of_a_virtual_topic_is_kept_with_the_queue_it_failed_in(connect, node, topic, name):
    queues = [f"Consumer.{name.replace('.', '-')}-{each}.VirtualTopic.{topic}" for each in "AB"]
    clients = [connect() for _ in queues]
    for client, place in zip(clients, queues, strict=True):
        client.subscribe(f"/queue/{place}", ack="client-individual")
    connect().send(f"/topic/VirtualTopic.{topic}", "poison", persistent="true")
    for client in clients:
        client.nack(client.take()[0])
    for place in queues:
        where = DLQ if topic == "shared" else f"DLQ.{place}.dead"
        [letter] = [each for each in node.browse(where) if each.original_destination == f"/queue/{place}"]
        assert letter.headers["dlqRoute"] == f"/topic/VirtualTopic.{topic},/queue/{place}"


def test_a_dead_letter_tells_why_when_by_whom_and_after_how_many_deliveries(connect, node, name):
    client, begin = connect(**{"client-id": f"worker-{name}"}), int(time.time() * 1000)
    reject(client, f"own.{name}", "a")
    [letter] = node.browse(f"DLQ.own.{name}.dead")
    assert letter.headers["dlqConsumer"] == f"worker-{name}"
    assert "rejected" in letter.headers["dlqDeliveryFailureCause"]
    assert letter.headers["dlqDeliveryCount"] == "1"
    assert begin <= int(letter.headers["dlqTime"]) <= time.time() * 1000
    assert letter.headers["dlqRoute"] == f"/queue/own.{name}"


@pytest.mark.scenario("DL-02")
def test_what_fails_among_dead_letters_is_dropped_and_makes_no_queue_of_their_own(connect, node, name):
    client = connect()
    reject(client, f"own.{name}", "a")
    where = f"DLQ.own.{name}.dead"
    client.subscribe(f"/queue/{where}", id="dead", ack="client-individual")
    client.nack(client.take()[0])
    assert node.depth(where) == 0
    assert node.numbers(queue(where)).DroppedCount == 1
    assert not [each for each in node.node.broker.queues if each.destination.name.startswith(f"DLQ.{where}")]


@pytest.mark.scenario("DL-02", "Q14")
def test_dead_letters_expire_where_their_strategy_says_so(connect, node, name):
    reject(connect(), f"short.{name}", "a")
    where = queue(f"DLQ.short.{name}.dead")
    wait_until(lambda: node.numbers(where).ExpiredCount == 1, "it is expired")
    assert node.depth(where.name) == 0


# -- going back


@pytest.mark.scenario("AD-07")
def test_dead_letters_go_back_to_where_they_failed_and_may_fail_again(connect, node, name):
    client = connect()
    place, where = f"own.{name}", f"DLQ.own.{name}.dead"
    for times in (1, 2):
        if times == 1:
            reject(client, place, "a", "b", "c")
        else:
            client.subscribe(f"/queue/{place}", id="again", ack="client-individual")
            for message in client.take(3):
                assert "redelivered" not in message.headers
                client.nack(message)
            client.unsubscribe("again")
        assert [each.body for each in node.browse(where)] == [b"a", b"b", b"c"]
        assert node.ask(lambda admin: admin.resubmit(queue(where))) == 3
        assert node.bodies(place) == ["a", "b", "c"]
        assert node.depth(where) == 0
    route = f"/queue/{place},/queue/{where},/queue/{place},/queue/{where}"
    assert node.browse(place)[0].headers["dlqRoute"] == route


# -- plugins


def test_the_discarding_plugin_drops_what_it_names_and_counts_it(store, name, caplog):
    config = default_config(f"discarding-{name}", 0)
    running = RunningNode(
        replace(config, discarding=DiscardingSettings(False, drop_only=("a.*",), report_interval=2)), store.url
    )
    client = StompClient(running.port)
    with caplog.at_level("INFO", logger="brokerapp.core.redelivery.dead_lettering"):
        reject(client, "ab", "x", "y")
    assert running.numbers(queue("ab")).DroppedCount == 2
    assert "2 messages were dropped" in caplog.text
    reject(client, "b", "x")
    assert running.bodies(DLQ) == ["x"]
    client.leave()
    running.stop()


@pytest.mark.scenario("SC-11", "DL-07")
def test_the_time_stamping_plugin_sets_the_brokers_time_and_bounds_times_to_live(store, name):
    plugin = '<timeStampingBrokerPlugin zeroExpirationOverride="60000" ttlCeiling="90000"/>'
    config = parse_config(f"<broker><plugins>{plugin}</plugins></broker>", {})
    connectors = default_config("x", 0).connectors
    running = RunningNode(replace(config, name=f"stamping-{name}", connectors=connectors), store.url)
    client = StompClient(running.port)
    client.subscribe("/queue/a")
    now = int(time.time() * 1000)
    for headers, lives in (({}, 60_000), ({"expires": str(now + 10**9)}, 90_000), ({"expires": str(now + 5000)}, 5000)):
        for _ in range(2):  # the second as part of a run, when they come together
            client.send("/queue/a", "x", wait=False, **headers, timestamp=str(now))
        for message in client.take(2):
            stamp, expires = int(message.headers["timestamp"]), int(message.headers["expires"])
            assert now <= stamp <= time.time() * 1000
            assert expires - stamp == lives
    client.leave()
    running.stop()


@pytest.mark.parametrize(("flag", "asked", "dropped"), [("true", "false", 0), ("false", "true", 1)])
def test_the_persistency_plugin_overrules_what_clients_say(store, name, flag, asked, dropped):
    plugin = f'<forcePersistencyModeBrokerPlugin persistenceFlag="{flag}"/>'
    config = parse_config(f"<broker><plugins>{plugin}</plugins></broker>", {})
    connectors = default_config("x", 0).connectors
    running = RunningNode(replace(config, name=f"forcing-{flag}-{name}", connectors=connectors), store.url)
    client = StompClient(running.port)
    client.subscribe("/queue/a", ack="client")
    for _ in range(2):  # the second as part of a run, when they come together
        client.send("/queue/a", "x", wait=False, persistent=asked)
    messages = client.take(2)
    assert [each.headers.get("persistent", "false") for each in messages] == [flag, flag]
    client.nack(messages[0])
    assert running.numbers(queue("a")).DroppedCount == dropped
    client.leave()
    running.stop()


@pytest.mark.scenario("ST-34")
def test_a_policy_overrules_what_clients_say_where_they_send(store, name):
    policies = """<policyEntry queue="kept.>" xmlns:s="urn:sluice" s:forcePersistency="true"/>
        <policyEntry topic="kept.>" xmlns:s="urn:sluice" s:forcePersistency="true"/>
        <policyEntry queue="light.>" xmlns:s="urn:sluice" s:forcePersistency="false"/>"""
    text = f"""<broker><destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
        <virtualTopic name="kept.>"/></virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
        <destinationPolicy><policyMap><policyEntries>{policies}</policyEntries></policyMap></destinationPolicy></broker>"""
    connectors = default_config("x", 0).connectors
    running = RunningNode(replace(parse_config(text, {}), name=f"kept-{name}", connectors=connectors), store.url)
    client = StompClient(running.port)
    places = ("kept.a", "light.a", "as.sent", "Consumer.A.kept.t")
    for place in places:
        client.subscribe(f"/queue/{place}", id=place)

    def arrived(to: str, count: int = 1, **headers: str) -> list[tuple[str, str]]:
        client.send(to, "x", wait=False, **headers)
        messages = client.take(count)
        return sorted((each.headers["subscription"], each.headers.get("persistent", "false")) for each in messages)

    for _ in range(2):
        assert arrived("/queue/kept.a") == [("kept.a", "true")]
        assert arrived("/queue/light.a", persistent="true") == [("light.a", "false")]
        assert arrived("/queue/as.sent") == [("as.sent", "false")]
        assert arrived("/topic/kept.t") == [("Consumer.A.kept.t", "true")]
        assert arrived("/queue/light.a,/queue/kept.a", 2) == [("kept.a", "true"), ("light.a", "true")]
        assert arrived("/queue/kept.a", AMQ_SCHEDULED_DELAY="1") == [("kept.a", "true")]
    client.leave()
    running.stop()
