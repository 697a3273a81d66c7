"""Test management of named subscriptions by operators and policies."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from brokerapp.config import default_config
from brokerapp.errors import DestinationNotFound, RequestRefused, SelectorSyntaxError
from brokerapp.model.definitions import DeadLetterStrategy, PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SubscriptionIdentity
from tests.protocol.clients import PATIENCE
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

queue, topic = Destination.queue, Destination.topic


@pytest.fixture
def durable(connect):
    """Connects as a client-id and consumes its durable subscription; the client."""

    def subscribe(name, port=None, ack="auto", **headers):
        client = connect(port=port, **{"client-id": name})
        client.subscribe(f"/topic/{name}", ack=ack, **{"activemq.subscriptionName": "sub", **headers})
        return client

    return subscribe


def leave(client):
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)


def found(node, name):
    """The subscriptions of a test's client."""
    return [
        each for each in node.ask(lambda admin: admin.subscriptions()) if each.subscription.client_id.startswith(name)
    ]


def log_of(name):
    return Destination.parse(f"subscription://{name}:sub")


@pytest.mark.scenario("AD-16", "ST-23", "S1-14")
def test_subscriptions_are_listed_with_their_numbers_online_and_offline(durable, connect, node, name):
    client = durable(name, ack="client", selector="n > 1")
    wait_until(lambda: [each.numbers.ConsumerCount for each in found(node, name)] == [1], "it is online")
    wait_until(lambda: node.numbers(topic(name)).ConsumerCount == 1, "its topic has a consumer")
    leave(client)
    for number in range(4):
        connect().send(f"/topic/{name}", "m", n=str(number))
    wait_until(lambda: [each.numbers.QueueSize for each in found(node, name)] == [2], "it keeps two")
    [each] = found(node, name)
    selector = "convert_string_expressions:n > 1"
    assert each.subscription == SubscriptionIdentity(name, "sub", (topic(name),), selector, groups=("anonymous",))
    assert (each.numbers.ConsumerCount, each.numbers.EnqueueCount) == (0, 2)
    assert node.numbers(topic(name)).ConsumerCount == 0


@pytest.mark.scenario("DU-01", "AD-01", "DU-02", "VT-23")
def test_they_are_created_browsed_purged_and_deleted_from_outside(durable, connect, node, name):
    wanted = SubscriptionIdentity(name, "sub", (topic(name),))
    assert node.ask(lambda admin: admin.create_subscription(wanted)) == log_of(name)
    with pytest.raises(RequestRefused, match="already"):
        node.ask(lambda admin: admin.create_subscription(wanted))
    for body in "ab":
        connect().send(f"/topic/{name}", body)
    page = node.ask(lambda admin: admin.browse(log_of(name)))
    assert [(each.body, each.headers["destination"]) for each in page.messages] == [
        (b"a", f"/topic/{name}"),
        (b"b", f"/topic/{name}"),
    ]
    assert node.ask(lambda admin: admin.purge(log_of(name))) == 2
    client = durable(name)
    assert client.has_no_more()
    with pytest.raises(RequestRefused, match="in use"):
        node.ask(lambda admin: admin.delete(log_of(name)))
    with pytest.raises(RequestRefused, match=r"has subscribers|has the durable"):
        node.ask(lambda admin: admin.delete(topic(name)))
    leave(client)
    connect().send(f"/topic/{name}", "c")
    assert node.ask(lambda admin: admin.delete(log_of(name))) == 1
    assert found(node, name) == []
    with pytest.raises(DestinationNotFound):
        node.ask(lambda admin: admin.browse(log_of(name)))
    node.ask(lambda admin: admin.delete(topic(name)))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"selector": "a >"}, SelectorSyntaxError),
        ({"durable": False, "shared": True}, RequestRefused),
    ],
)
def test_what_cannot_be_created_is_refused(node, name, changed, error):
    wanted = replace(SubscriptionIdentity(name, "sub", (topic(name),)), **changed)
    with pytest.raises(error):
        node.ask(lambda admin: admin.create_subscription(wanted))
    assert found(node, name) == []
    with pytest.raises(RequestRefused, match="Create the subscription by topic"):
        node.ask(lambda admin: admin.create(log_of(name)))


def test_the_log_of_a_subscription_is_no_destination_for_clients(durable, connect, name):
    durable(name)
    client = connect()
    client.send(f"/subscription/{name}:sub", "m")
    assert "consumed by its name" in client.error().headers["message"]
    client.subscribe(f"/subscription/{name}:sub")
    assert "consumed by its name" in client.error().headers["message"]


# -- brokerctl


@pytest.fixture
def brokerctl(node):
    def run(*words):
        out = StringIO()
        call_command("brokerctl", "--redis", node.redis_url, "--name", node.name, *words, stdout=out)
        return out.getvalue()

    return run


def test_brokerctl_lists_creates_and_deletes_them(brokerctl, connect, name):
    assert brokerctl("subscribe", name, "sub", name, "--selector", "n > 1") == f"subscription://{name}:sub created\n"
    connect().send(f"/topic/{name}", "m", n="2")
    wait_until(
        lambda: f"durable subscription 'sub' of client-id '{name}': offline, 1 message" in brokerctl("subscriptions"),
        "",
    )
    [row] = [each for each in json.loads(brokerctl("subscriptions", "--json")) if each["client_id"] == name]
    assert (row["topics"], row["selector"], row["QueueSize"]) == ([f"topic://{name}"], "n > 1", 1)
    assert "1 message" in brokerctl("delete", f"subscription://{name}:sub")
    assert name not in brokerctl("subscriptions")
    with pytest.raises(CommandError, match="needs a client-id"):
        brokerctl("subscribe", "", "sub", name)


# -- a node of its own


@pytest.fixture
def restartable(store, monkeypatch):
    """Runs nodes of one broker one after the other."""
    monkeypatch.setattr("brokerapp.runtime.reporting.node_reports.TICK_SECONDS", 0.1)
    running = []

    def start(**settings):
        stop()
        running.append(RunningNode(replace(default_config("managed", 0), **settings), store.url))
        return running[-1]

    def stop():
        if running:
            running.pop().stop()

    start.stop = stop
    yield start
    stop()


@pytest.mark.scenario("DU-01", "DU-02", "SE-22")
@pytest.mark.scenario("F34")
def test_after_a_restart_it_goes_on_with_its_selector_and_what_it_kept(restartable, durable, connect, store, name):
    node = restartable()
    leave(durable(name, node.port, selector="n > 1"))
    producer = connect(port=node.port)
    for number in range(4):
        producer.send(f"/topic/{name}", str(number), n=str(number), persistent="true")
    leave(producer)
    node = restartable()
    wait_until(lambda: [each.numbers.QueueSize for each in found(node, name)] == [2], "it keeps two")
    assert [each.subscription.condition for each in found(node, name)] == ["n > 1"]
    producer = connect(port=node.port)
    for number in range(2):
        producer.send(f"/topic/{name}", f"again {number}", n=str(2 * number))
    client = durable(name, node.port, selector="n > 1")
    assert client.bodies(3) == ["2", "3", "again 1"]
    assert client.has_no_more()
    leave(client)
    client = durable(name, node.port, selector="n > 1")
    assert client.has_no_more()
    client.unsubscribe()
    client.unsubscribe(**{"activemq.subscriptionName": "sub"})
    leave(client)
    assert found(restartable(), name) == []


def test_without_a_node_they_are_listed_browsed_and_deleted_in_the_store(restartable, durable, connect, store, name):
    node = restartable()
    leave(durable(name, node.port))
    producer = connect(port=node.port)
    producer.send(f"/topic/{name}", "m", persistent="true")
    leave(producer)
    restartable.stop()
    [each] = found(node, name)
    assert each.numbers.QueueSize == 1
    assert [each.body for each in node.ask(lambda admin: admin.browse(log_of(name))).messages] == [b"m"]
    assert node.ask(lambda admin: admin.delete(log_of(name))) == 1
    assert found(node, name) == []


@pytest.mark.scenario("F34")
def test_a_shared_one_that_is_not_durable_does_not_outlive_the_node(restartable, connect, store, name):
    node = restartable()
    client = connect(port=node.port)
    client.subscribe(
        f"/topic/{name}",
        **{"activemq.subscriptionName": name, "activemq.shared": "true", "activemq.durable": "false"},
    )
    client.send(f"/topic/{name}", "m")
    node = restartable()
    kinds = [
        each.destination.kind for each in node.ask(lambda admin: admin.stats())[1] if name in str(each.destination)
    ]
    assert DestinationKind.SUBSCRIPTION not in kinds


@pytest.mark.scenario("DU-03")
def test_those_that_are_offline_for_too_long_are_removed_and_others_stay(restartable, durable, node, name):
    node = restartable(offline_durable_subscriber_timeout=300, offline_durable_subscriber_task_schedule=100)
    online = durable(f"{name}.online", node.port)
    leave(durable(f"{name}.offline", node.port))
    wait_until(lambda: [each.subscription.client_id for each in found(node, name)] == [f"{name}.online"], "one is left")
    assert online.connection.is_connected()


def test_without_keep_durable_subs_active_offline_ones_keep_persistent_messages_only(
    restartable, durable, connect, name
):
    node = restartable(keep_durable_subs_active=False)
    client = durable(name, node.port)
    producer = connect(port=node.port)
    producer.send(f"/topic/{name}", "online")
    assert client.bodies() == ["online"]
    leave(client)
    producer.send(f"/topic/{name}", "lost")
    producer.send(f"/topic/{name}", "kept", persistent="true")
    client = durable(name, node.port)
    producer.send(f"/topic/{name}", "online again")
    assert client.bodies(2) == ["kept", "online again"]


def test_a_broker_may_have_none(restartable, connect, name):
    client = connect(port=restartable(reject_durable_consumers=True).port, **{"client-id": name})
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "n"})
    assert "rejectDurableConsumers" in client.error().headers["message"]


# -- policies


@pytest.fixture
def policies(node):
    """Puts policies in force."""

    def put(*policies):
        async def change(admin):
            return await admin.define(replace(await admin.definitions(), policies=policies), "test")

        node.wait_for_definitions(node.ask(change).version)

    yield put
    put()


@pytest.mark.scenario("SC-02")
@pytest.mark.parametrize(
    ("is_durable", "expected"),
    [(True, 10), (False, 15)],
)
def test_a_policy_sets_the_prefetch_of_topic_and_durable_subscribers(
    policies, connect, durable, name, is_durable, expected
):
    policies(PolicyEntry(topic(f"{name}.>"), topic_prefetch=15, durable_topic_prefetch=10))
    client = durable(name, ack="client-individual") if is_durable else connect()
    if not is_durable:
        client.subscribe(f"/topic/{name}", ack="client-individual")
    for _ in range(20):
        client.send(f"/topic/{name}", "m", wait=False)
    client.round_trip()
    client.take(expected)
    assert client.has_no_more()


@pytest.mark.scenario("DL-01")
@pytest.mark.parametrize(
    ("strategy", "dead_letters"),
    [
        (None, "ActiveMQ.DLQ"),
        (DeadLetterStrategy("individual"), "ActiveMQ.DLQ.Topic.{}"),
        (
            DeadLetterStrategy("individual", destination_per_durable_subscriber=True, topic_suffix=".dead"),
            "ActiveMQ.DLQ.Topic.{}.{}:sub.dead",
        ),
    ],
)
def test_what_a_durable_subscriber_rejects_goes_where_the_policy_of_its_topic_says(
    policies, durable, connect, node, name, strategy, dead_letters
):
    if strategy is not None:
        policies(PolicyEntry(topic(name), dead_letter=strategy))
    client, producer = durable(name, ack="client-individual"), connect()
    producer.send(f"/topic/{name}", "bad", persistent="true")
    producer.send(f"/topic/{name}", "dropped")
    for message in client.take(2):
        client.nack(message)
    producer.subscribe("/queue/" + dead_letters.replace("{}", name))
    [letter] = producer.take()
    assert letter.body == "bad"
    assert letter.headers["original-destination"] == f"/topic/{name}"
    assert "NACK" in letter.headers["dlqDeliveryFailureCause"]
    assert producer.has_no_more()
    leave(client)
    assert durable(name).has_no_more()


def test_what_expires_in_a_durable_subscription_is_not_delivered(durable, connect, node, name):
    leave(durable(name))
    producer = connect()
    producer.send(f"/topic/{name}", "late", expires="1")
    producer.send(f"/topic/{name}", "kept")
    assert durable(name).bodies() == ["kept"]


def test_what_a_plain_subscriber_of_a_topic_rejects_is_gone_as_in_activemq(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}", ack="client-individual", prefetch=1)
    for body in "ab":
        client.send(f"/topic/{name}", body, persistent="true")
    client.nack(client.take()[0])
    assert client.bodies() == ["b"]
    assert client.errors.empty()


def test_no_local_holds_for_plain_subscribers_too(connect, name):
    client, other = connect(), connect()
    client.subscribe(f"/topic/{name}", **{"activemq.noLocal": "true"})
    for number in range(3):  # the later ones take the way of many like them
        client.send(f"/topic/{name}", f"mine {number}")
        other.send(f"/topic/{name}", f"other {number}")
    assert client.bodies(3) == ["other 0", "other 1", "other 2"]
    assert client.has_no_more()


@pytest.mark.scenario("SC-03")
def test_nothing_is_missing_over_many_rounds_of_coming_and_going(durable, connect, name):
    producer, heard = connect(), []
    leave(durable(name))
    for number in range(30):
        producer.send(f"/topic/{name}", str(number), wait=number % 2 == 0)
        producer.round_trip()
        client = durable(name, ack="client")
        [message] = client.take()
        heard.append(message.body)
        client.ack(message)
        leave(client)
    assert heard == [str(number) for number in range(30)]
