"""Test temporary destinations in a cluster, also when connections or brokers end."""

import pytest

from tests.protocol.clients import StompClient
from tests.waiting import wait_until

LONG = "60000"


def returning(client_id: str, window: str = LONG) -> dict[str, str]:
    """The CONNECT of a client that may reconnect."""
    return {"client-id": client_id, "reconnect": window}


def own(client: StompClient, kind: str = "queue") -> str:
    """A temporary destination of the client, with a consumer, as others name it."""
    client.subscribe(f"/temp-{kind}/box", id="box")
    client.send("/topic/tell.me", "", reply_to=f"/temp-{kind}/box")
    return f"/temp-{kind}/box"


def known(cluster, client_at: str, home: str) -> str | None:
    """The one that a broker knows another one to have."""
    return next(iter(cluster.lodgers(client_at, home)), None)


@pytest.mark.scenario("T01", "T10")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_it_is_on_all_brokers_from_its_creation_and_anybody_may_send_to_it(cluster, client_at, name, kind):
    client = client_at("X")
    own(client, kind)
    for other in "WY":
        wait_until(lambda other=other: known(cluster, other, "X"), "it is there")
        there = known(cluster, other, "X").replace("temp-", "/remote-temp-", 1).replace("://", "/", 1)
        cluster.serves(other, "X", known(cluster, other, "X"))
        client_at(other).send(there, other)
        assert client.bodies() == [other]


@pytest.mark.scenario("T18")
def test_a_broker_that_comes_later_learns_of_it(cluster, client_at, name):
    cluster["Y"].kill()
    own(client_at("X"))
    cluster["Y"].start()
    wait_until(lambda: known(cluster, "Y", "X"), "it is told")


@pytest.mark.scenario("T02", "T03")
@pytest.mark.parametrize("ending", ["leave", "break_off"])
def test_without_reconnecting_it_is_never_stored_and_goes_everywhere_with_its_connection(
    cluster, client_at, name, ending
):
    client = client_at("X")
    own(client)
    for other in "WY":
        wait_until(lambda other=other: known(cluster, other, "X"), "it is there")
    assert not any("belongs" in (each.stored(known(cluster, "W", "X")) or {}) for each in cluster)
    getattr(client, ending)()
    for other in "WY":
        wait_until(lambda other=other: not known(cluster, other, "X"), "it is gone")


@pytest.mark.scenario("T08", "T03")
def test_with_reconnecting_it_is_stored_on_its_home_broker_alone(cluster, client_at, name):
    client = client_at("X", **returning(name))
    own(client)
    wait_until(lambda: known(cluster, "W", "X"), "it is there")
    destination = known(cluster, "W", "X")
    assert cluster["X"].stored(destination)["belongs"]["client_id"] == name
    assert "belongs" not in (cluster["W"].stored(destination) or {})
    client.leave()  # who says good-bye needs it no more
    for other in "WY":
        wait_until(lambda other=other: not known(cluster, other, "X"), "it is gone")
    wait_until(lambda: cluster["X"].stored(destination) is None, "it is gone from the store")


@pytest.mark.scenario("T07")
def test_a_client_that_reconnects_within_the_window_finds_it_with_what_came_meanwhile(cluster, client_at, name):
    client = client_at("X", **returning(name))
    own(client)
    wait_until(lambda: known(cluster, "W", "X"), "it is there")
    destination = known(cluster, "W", "X")
    client.break_off()
    client_at("X").send(destination.replace("temp-queue://", "/remote-temp-queue/"), "meanwhile", persistent="true")
    again = client_at("X", **returning(name))
    again.subscribe("/temp-queue/box", id="box")
    assert again.bodies() == ["meanwhile"]
    assert known(cluster, "W", "X") == destination
    again.leave()


def test_it_follows_a_client_that_reconnects_to_another_broker(cluster, client_at, name):
    client = client_at("X", **returning(name))
    own(client)
    wait_until(lambda: known(cluster, "W", "X"), "it is there")
    destination = known(cluster, "W", "X")
    client.break_off()
    again = client_at("Y", **returning(name))
    again.subscribe("/temp-queue/box", id="box")
    for other in "WX":
        wait_until(lambda other=other: known(cluster, other, "Y") == destination, "it is at home there now")
    cluster.serves("X", "Y", destination)
    client_at("X").send(destination.replace("temp-queue://", "/remote-temp-queue/"), "found")
    assert again.bodies() == ["found"]
    again.leave()
    wait_until(lambda: not known(cluster, "X", "Y"), "it is gone")


@pytest.mark.scenario("T06")
def test_when_its_client_does_not_come_back_in_time_it_is_deleted_everywhere(cluster, client_at, name):
    client = client_at("X", **returning(name, "600"))
    own(client)
    wait_until(lambda: known(cluster, "W", "X"), "it is there")
    client.break_off()
    for other in "WY":
        wait_until(lambda other=other: not known(cluster, other, "X"), "it is gone")
    again = client_at("X", **returning(name, "600"))
    again.send("/temp-queue/box", "")
    wait_until(lambda: known(cluster, "W", "X"), "a new one is there")


@pytest.mark.scenario("T04", "T05", "T06")
def test_after_a_crash_of_its_home_those_that_may_reconnect_are_monitored_and_others_go(cluster, client_at, name):
    kept, lost, late = (
        client_at("Y", **returning(f"{name}.kept")),
        client_at("Y"),
        client_at("Y", **returning(f"{name}.late", "700")),
    )
    for each in (kept, lost, late):
        own(each)
    wait_until(lambda: len(cluster.lodgers("X", "Y")) == 3, "they are there")
    owners = cluster.lodgers("X", "Y")
    [destination] = [each for each, about in owners.items() if about["client_id"] == f"{name}.kept"]
    cluster.serves("X", "Y", destination)
    client_at("Y").send(destination.replace("temp-queue://", "/remote-temp-queue/"), "before", persistent="true")
    assert kept.bodies() == ["before"]
    kept.unsubscribe("box")
    client_at("Y").send(destination.replace("temp-queue://", "/remote-temp-queue/"), "pending", persistent="true")
    cluster["Y"].kill()
    wait_until(lambda: list(cluster.lodgers("X", "Y")) == [destination], "only who has time left is waited for")
    assert cluster.lodgers("X", "Y")[destination]["waits_until_ms"]
    cluster["Y"].start()
    cluster.settle()
    wait_until(
        lambda: cluster.lodgers("X", "Y").get(destination, {}).get("waits_until_ms") == 0, "its home has it again"
    )
    again = client_at("Y", **returning(f"{name}.kept"))
    again.subscribe("/temp-queue/box", id="box")
    assert again.bodies() == ["pending"]
    assert not cluster["Y"].stored(next(each for each in owners if each != destination))
    again.leave()
