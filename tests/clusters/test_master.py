"""Test what works without the master of a cluster, and what a broker learns when it comes back."""

import pytest

from brokerapp.cluster.status import MemberState
from brokerapp.errors import RequestRefused
from tests.protocol.clients import RawClient
from tests.waiting import wait_until


def native(name):
    return f"queue://{name}"


@pytest.mark.scenario("L03")
def test_a_broker_that_was_away_learns_what_was_made_and_what_was_deleted(cluster, client_at, name):
    for each in ("deleted", "remade"):
        cluster["X"].create(f"{name}.{each}")
        wait_until(lambda each=each: cluster["Y"].stored(native(f"{name}.{each}")), "it is there")
        client_at("Y").send(f"/queue/{name}.{each}", "old", persistent="true")
    cluster["Y"].kill()
    for each in ("deleted", "remade"):
        cluster["X"].delete(f"{name}.{each}")
    for each in ("made", "remade"):
        cluster["X"].create(f"{name}.{each}")
    cluster["Y"].start()
    wait_until(lambda: not cluster["Y"].status().suspended, "it is in step")
    assert cluster["Y"].stored(native(f"{name}.deleted")) is None
    assert cluster["Y"].stored(native(f"{name}.made"))["declared"]
    assert cluster.bodies("Y", native(f"{name}.remade")) == []
    assert cluster["Y"].status().record_version == cluster["W"].status().record_version


@pytest.fixture(scope="module")
def without_master(running_cluster):
    """The master is dead, and there are a durable subscription and two queues of before."""
    cluster = running_cluster
    cluster.revive()
    cluster["X"].create("master.before")
    cluster["X"].create("master.stays")
    wait_until(lambda: all(each.stored(native("master.stays")) for each in cluster), "they are everywhere")
    subscriber = cluster.client("X", **{"client-id": "me"})
    subscriber.subscribe("/topic/master.news", **{"activemq.subscriptionName": "known"})
    wait_until(lambda: "subscription://me:known" in cluster.logs("Y"), "the durable subscription is everywhere")
    subscriber.leave()
    cluster["W"].kill()
    for each in "XY":
        wait_until(lambda each=each: not cluster[each].status().may_change, "it is missed")
    yield cluster
    cluster.revive()


@pytest.fixture
def client(without_master):
    """A client of a broker that is left."""
    client = without_master.client("X", **{"client-id": "me"})
    yield client
    if client.connection.is_connected():
        client.connection.disconnect()


MASTER_AWAY = "master W cannot be reached"


@pytest.mark.scenario("L05")
@pytest.mark.parametrize("operation", ["create", "delete"])
def test_without_it_operators_neither_create_nor_delete(without_master, operation):
    target = {"create": "queue://master.new", "delete": "queue://master.before"}[operation]
    with pytest.raises(RequestRefused, match=MASTER_AWAY):
        getattr(without_master["X"], operation)(target)
    for each in "XY":
        assert without_master[each].stored("queue://master.new") is None
        assert without_master[each].stored("queue://master.before")["declared"]


@pytest.mark.scenario("L07")
def test_without_it_no_durable_subscription_begins(without_master, client):
    client.subscribe("/topic/master.news", **{"activemq.subscriptionName": "new"})
    assert MASTER_AWAY in client.error().headers["message"]
    assert "subscription://me:new" not in without_master.logs("X")


@pytest.mark.scenario("L07")
def test_without_it_no_durable_subscription_ends(without_master, client):
    client.frame("UNSUBSCRIBE", id="-", **{"activemq.subscriptionName": "known"})
    assert MASTER_AWAY in client.error().headers["message"]
    assert "subscription://me:known" in without_master.logs("X")


@pytest.mark.scenario("L07")
def test_without_it_a_durable_subscription_that_exists_is_used(without_master, client):
    publisher = without_master.client("Y")
    publisher.send("/topic/master.news", "kept", persistent="true")
    client.subscribe("/topic/master.news", **{"activemq.subscriptionName": "known"})
    assert client.bodies() == ["kept"]
    publisher.leave()


@pytest.mark.scenario("L06")
@pytest.mark.parametrize("queue", ["master.stays", "master.auto"])
def test_without_it_clients_produce_and_consume_and_create_what_they_name(without_master, client, queue):
    producer = without_master.client("Y")
    producer.send(f"/queue/{queue}", "goes on", persistent="true")
    client.subscribe(f"/queue/{queue}")
    assert client.bodies() == ["goes on"]
    producer.leave()


@pytest.mark.scenario("L06")
def test_without_it_temporary_destinations_come_and_go(without_master, client):
    client.subscribe("/temp-queue/box")
    wait_until(lambda: without_master.lodgers("Y", "X"), "it is on the other broker")
    client.leave()
    wait_until(lambda: not without_master.lodgers("Y", "X"), "it is gone")


@pytest.mark.scenario("L02", "L04")
def test_a_broker_that_starts_without_it_knows_what_there_is_and_lets_clients_in_when_it_is_back(without_master):
    cluster = without_master
    cluster["Y"].restart()
    status = cluster["Y"].status()
    assert (status.suspended, status.may_change) == (True, False)
    [master] = [each for each in status.members if each.is_master]
    assert (master.state, master.last_error) == (MemberState.DOWN, "Connection refused")
    assert cluster["Y"].stored("queue://master.stays")["declared"]  # it has that by itself
    refused = RawClient(cluster["Y"].port, None)
    refused.tell("CONNECT", {"accept-version": "1.2", "host": "here"})
    error = refused.hear()
    assert error.command == "ERROR"
    assert "until it has reached the master W" in error.headers["message"]
    refused.close()
    cluster["W"].start()
    wait_until(lambda: not cluster["Y"].status().suspended, "it goes on by itself")
    client = cluster.client("Y")
    client.send("/queue/master.stays", "let in", persistent="true")
    client.leave()
    wait_until(lambda: cluster["Y"].status().may_change, "changes can be made again")
    cluster["Y"].delete("queue://master.before")
    wait_until(lambda: cluster["W"].stored("queue://master.before") is None, "also at the master")
