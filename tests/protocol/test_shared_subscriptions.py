"""Test shared subscriptions of topics, durable and non-durable, as in JMS 2.0 and Artemis."""

import pytest

from brokerapp.model.destination import DestinationKind
from tests.protocol.clients import PATIENCE
from tests.waiting import wait_until

SHARED = {"activemq.subscriptionName": "sub", "activemq.shared": "true"}
NON_DURABLE = {"activemq.durable": "false"}


@pytest.fixture
def shared(connect, name):
    """Connects and consumes a shared subscription of the test's topic; the client."""

    def subscribe(client_id=None, destination=None, **headers):
        client = connect(**({"client-id": client_id, "shared-client-id": "true"} if client_id else {}))
        options = {**SHARED, "activemq.subscriptionName": name, **headers}
        client.subscribe(destination or f"/topic/{name}", ack="client-individual", **options)
        return client

    return subscribe


def leave(client):
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)


def error_of(client):
    return client.error().headers["message"]


def send(client, name, count):
    for number in range(count):
        client.send(f"/topic/{name}", str(number))


@pytest.mark.parametrize("durable", ["true", "false"])
@pytest.mark.parametrize("client_id", [None, "c"])
def test_its_consumers_share_what_is_sent_each_message_goes_to_one(shared, connect, name, durable, client_id):
    both = [shared(client_id and name, **{"activemq.durable": durable}) for _ in range(2)]
    plain = connect()
    plain.subscribe(f"/topic/{name}")
    send(plain, name, 10)
    taken = [client.bodies(5) for client in both]
    assert sorted(taken[0] + taken[1]) == [str(number) for number in range(10)]
    assert all(client.has_no_more() for client in both)
    assert len(plain.bodies(10)) == 10


def test_a_durable_one_goes_on_collecting_without_consumers(shared, connect, name):
    producer = connect()
    leave(shared())
    send(producer, name, 2)
    assert shared().bodies(2) == ["0", "1"]


@pytest.mark.scenario("F28")
def test_a_non_durable_one_is_gone_with_its_last_consumer(shared, connect, node, name):
    producer = connect()
    first, second = shared(**NON_DURABLE), shared(**NON_DURABLE)
    leave(first)
    producer.send(f"/topic/{name}", "kept")
    assert second.bodies() == ["kept"]
    leave(second)
    producer.send(f"/topic/{name}", "missed")
    other = shared(destination=f"/topic/{name}.other", **NON_DURABLE)
    producer.send(f"/topic/{name}.other", "new")
    assert other.bodies() == ["new"]
    leave(other)
    wait_until(lambda: not logs_of(node, name), "its logs are gone")


def test_what_a_consumer_held_goes_to_the_others_flagged_as_redelivered(shared, connect, name):
    producer = connect()
    first = shared()
    producer.send(f"/topic/{name}", "m")
    first.take()
    second = shared()
    leave(first)
    [message] = second.take()
    assert (message.body, message.headers["redelivered"]) == ("m", "true")


@pytest.mark.parametrize("durable", ["true", "false"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"selector": "n > 5"}, {"selector": "n > 6"}),
        ({"selector": "n > 5"}, {}),
        ({}, {"selector": "n > 5"}),
        ({}, {"destination": "other"}),
    ],
)
@pytest.mark.scenario("F29")
def test_who_joins_consumers_with_another_topic_or_selector_is_refused(shared, name, durable, first, second):
    option = {"activemq.durable": durable}
    shared(**option, **first)
    if "destination" in second:
        second = {"destination": f"/topic/{name}.other"}
    assert "with another topic or selector" in error_of(shared(**option, **second))


@pytest.mark.scenario("F30")
def test_without_consumers_another_selector_starts_a_durable_one_anew(shared, connect, name):
    producer = connect()
    leave(shared())
    producer.send(f"/topic/{name}", "old", n="7")
    client = shared(selector="n > 5")
    producer.send(f"/topic/{name}", "no", n="1")
    producer.send(f"/topic/{name}", "new", n="8")
    assert client.bodies() == ["new"]
    assert client.has_no_more()


def test_its_selector_decides_what_is_kept_for_all_its_consumers(shared, connect, name):
    producer = connect()
    leave(shared(selector="n > 5"))
    for number in (4, 6, 5, 7):
        producer.send(f"/topic/{name}", str(number), n=str(number))
    both = [shared(selector="n > 5", **{"activemq.prefetchSize": "1"}) for _ in range(2)]
    assert sorted(both[0].bodies() + both[1].bodies()) == ["6", "7"]


@pytest.mark.scenario("F31")
def test_unsubscribing_by_name_is_refused_while_it_is_used_deletes_it_then_and_errs_when_it_is_unknown(
    shared, connect, name
):
    admin = connect()
    client = shared()
    headers = {"activemq.subscriptionName": name}
    admin.unsubscribe(id="x", **headers)
    assert "in use" in error_of(admin)
    leave(client)
    send(admin, name, 1)
    admin.unsubscribe(id="x", **headers)
    assert shared().has_no_more()
    admin.unsubscribe(id="x", **{"activemq.subscriptionName": "unknown"})
    assert "durable subscription 'unknown' not found" in error_of(admin)


@pytest.mark.scenario("F32", "F33")
def test_client_ids_and_names_tell_subscriptions_apart_whatever_is_in_them(shared, connect, name):
    producer = connect()
    pairs = [(None, f"{name}.a.b.c"), (f"{name}.a", "b.c"), (f"{name}.a.b", "c"), (f"{name}:a", "b"), (name, "a:b")]
    clients = [shared(client_id, **{"activemq.subscriptionName": of}) for client_id, of in pairs]
    producer.send(f"/topic/{name}", "m")
    assert [client.bodies() for client in clients] == [["m"]] * len(pairs)


def test_a_durable_and_a_non_durable_one_of_the_same_name_are_two(shared, connect, name):
    durable, non_durable = shared(), shared(**NON_DURABLE)
    connect().send(f"/topic/{name}", "m")
    assert durable.bodies() == non_durable.bodies() == ["m"]


def test_shared_and_unshared_do_not_mix(connect, name):
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "sub"})
    client.unsubscribe()
    client.subscribe(f"/topic/{name}", **SHARED)
    assert "cannot be shared and unshared" in error_of(client)


def test_a_client_id_is_shared_only_by_those_who_all_say_so(connect, raw, name):
    connect(**{"client-id": name, "shared-client-id": "true"})
    connect(**{"client-id": name, "shared-client-id": "true"})
    refused = raw(version=None)
    refused.tell("CONNECT", {"accept-version": "1.2", "host": "h", "client-id": name})
    assert "is connected already" in refused.hear().headers["message"]
    connect(**{"client-id": f"{name}.own"})
    refused = raw(version=None)
    refused.tell(
        "CONNECT", {"accept-version": "1.2", "host": "h", "client-id": f"{name}.own", "shared-client-id": "true"}
    )
    assert "is connected already" in refused.hear().headers["message"]


@pytest.mark.scenario("S09")
def test_who_shares_a_client_id_shares_its_durable_subscriptions_without_saying_so_as_in_artemis(connect, name):
    clients = []
    for _ in range(2):
        client = connect(**{"client-id": name, "shared-client-id": "true"})
        client.subscribe(f"/topic/{name}", ack="client", **{"durable-subscription-name": "sub"})
        clients.append(client)
    send(clients[0], name, 4)
    assert sorted(clients[0].bodies(2) + clients[1].bodies(2)) == ["0", "1", "2", "3"]


def test_sharing_needs_a_name(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}", **{"activemq.shared": "true"})
    assert "has a name" in error_of(client)


def logs_of(node, name):
    """The logs that the store has for a test's subscriptions."""
    _, stats, _ = node.ask(lambda admin: admin.stats())
    return [
        each
        for each in stats
        if each.destination.kind is DestinationKind.SUBSCRIPTION and name in each.destination.name
    ]
