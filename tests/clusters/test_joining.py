"""Test which brokers may join a cluster, and clusters without a master, with brokers in threads."""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from brokerapp.cluster.settings import ClusterMember, ClusterSettings
from brokerapp.cluster.status import MemberState
from brokerapp.config import Authentication, ConfiguredGrant, TransportConnector, User, default_config
from brokerapp.model.destination import Destination
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.address import BrokerAddress
from brokerapp.openwire.commands import ConnectionControl
from brokerapp.store.server.embedded import EmbeddedStore
from tests.certificates import PASSWORD, Authority
from tests.ports import free_port
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.openwire_client import OpenWireClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    """One server: each broker has a name, and so keys, of its own."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@contextmanager
def pair(store, master: bool = False, **of_second) -> Iterator[tuple[RunningNode, RunningNode]]:
    """Two brokers that know of each other; the second one is told something else."""
    names = [f"joining-{next(_numbers)}" for _ in range(2)]
    members = tuple(ClusterMember(name, BrokerAddress("127.0.0.1", free_port())) for name in names)
    terms = ClusterSettings(members, names[0] if master else "", retry_ms=100)
    configs = [replace(default_config(each.name, each.address.port), cluster=terms) for each in members]
    if login := of_second.pop("both_terms", None):
        configs[0] = replace(configs[0], cluster=replace(terms, **login))
    if change := of_second.pop("terms", None):
        of_second["cluster"] = replace(terms, **change)
    for both in ("authentication", "authorization"):
        if both in of_second:
            configs[0] = replace(configs[0], **{both: of_second[both]})
    configs[1] = replace(configs[1], **of_second)
    nodes: list[RunningNode] = []
    try:
        for config in configs:
            nodes.append(RunningNode(config, store.url))
        yield nodes[0], nodes[1]
    finally:
        for node in nodes:
            node.stop()


def member(node: RunningNode, other: RunningNode):
    """How one sees the other."""
    status = node.ask(lambda admin: admin.cluster())
    return next(each for each in status.members if each.name == other.name)


def sees(node: RunningNode, other: RunningNode, state: MemberState) -> None:
    """Wait until one sees the other so."""
    wait_until(lambda: member(node, other).state is state, f"{other.name} is {state}")


@pytest.mark.scenario("L27")
@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"auto_destroy_after": 777}, "autoDestroyAfter is '777' there and '120000' here"),
        ({"reconnect_window": 1}, "reconnectWindow is '1' there and '50000' here"),
    ],
)
def test_brokers_that_were_told_different_things_refuse_each_other_and_say_what(store, told, why):
    with pair(store, **told) as (first, second):
        sees(second, first, MemberState.REFUSED)
        assert why in member(second, first).last_error


def test_only_the_user_of_the_cluster_is_let_in_as_a_broker(store):
    users = Authentication((User("brokers", "secret"), User("somebody", "else")))
    with pair(store, authentication=users, terms={"user": "somebody", "password": "else"}) as (first, second):
        sees(second, first, MemberState.REFUSED)
        assert "somebody is not the user of the cluster's brokers" in member(second, first).last_error


def test_who_is_in_no_list_is_not_let_in(store):
    with pair(store) as (first, _):
        stranger = RawClient(first.port, None)
        stranger.tell("CONNECT", {"accept-version": "1.2", "sluice-broker": "stranger", "sluice-cluster": "{}"})
        error = stranger.hear()
        assert (error.command, "stranger is not a broker of this cluster" in error.headers["message"]) == (
            "ERROR", True,
        )  # fmt: skip


def test_without_a_master_what_operators_make_and_delete_is_told_to_all_that_are_there(store):
    with pair(store) as (first, second):
        for node, other in ((first, second), (second, first)):
            sees(node, other, MemberState.UP)
        queue = Destination.queue("told")
        first.ask(lambda admin: admin.create(queue))
        wait_until(
            lambda: second.look(lambda: second.node.broker.creation.is_declared(queue)), "it is at the other one"
        )
        second.ask(lambda admin: admin.delete(queue))
        wait_until(lambda: not first.look(lambda: queue in first.node.broker.queues), "it is gone at the first one")


def test_a_master_that_is_linked_again_tells_what_was_missed_meanwhile(store):
    with pair(store, master=True) as (first, second):
        sees(first, second, MemberState.UP)
        wait_until(lambda: second.ask(lambda admin: admin.cluster()).may_change, "it is in step")
        missed = Destination.queue("missed")
        link = first.look(lambda: first.node.broker.cluster.peers[second.name].link)
        first.look(lambda: link.close("a test cuts it"))
        first.ask(lambda admin: admin.create(missed))
        wait_until(lambda: second.look(lambda: second.node.broker.creation.is_declared(missed)), "it was told")


@contextmanager
def over_tls(store, *stores: TlsStores) -> Iterator[list[RunningNode]]:
    """Two brokers that listen, and are linked, over TLS only, each with what it shows and believes."""
    names = [f"joining-{next(_numbers)}" for _ in stores]
    members = tuple(ClusterMember(name, BrokerAddress("127.0.0.1", free_port(), tls=True)) for name in names)
    terms = ClusterSettings(members, names[0], retry_ms=100)
    nodes: list[RunningNode] = []
    try:
        for each, tls in zip(members, stores, strict=True):
            listening = (TransportConnector("ssl", "stomp+ssl", "127.0.0.1", each.address.port),)
            nodes.append(
                RunningNode(
                    replace(default_config(each.name, 0), connectors=listening, cluster=terms, tls=tls), store.url
                )
            )
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def shown(authority: Authority, believed: Authority) -> TlsStores:
    """A certificate of one authority; those of another are believed."""
    return TlsStores(KeyStore(str(authority.issue("broker").p12), PASSWORD), trust_store=KeyStore(str(believed.pem)))


def test_brokers_are_linked_over_tls_where_their_list_says_so(store, tmp_path):
    authority = Authority(tmp_path)
    trusting = ssl.create_default_context(cafile=str(authority.pem))
    with over_tls(store, *[shown(authority, authority)] * 2) as (first, second):
        sees(first, second, MemberState.UP)
        sees(second, first, MemberState.UP)
        consumer, producer = (RawClient(node.port, tls=trusting) for node in (second, first))
        consumer.tell("SUBSCRIBE", {"id": "1", "destination": "/queue/secret"})
        producer.tell("SEND", {"destination": "/queue/secret", "persistent": "true"}, b"whispered")
        assert consumer.hear().body == b"whispered"
        made = Destination.queue("made")
        wait_until(lambda: second.ask(lambda admin: admin.cluster()).may_change, "it is in step")
        second.ask(lambda admin: admin.create(made))
        wait_until(lambda: first.look(lambda: first.node.broker.creation.is_declared(made)), "it is at the master")
        for client in (consumer, producer):
            client.close()


def test_a_broker_whose_certificate_is_not_believed_is_linked_by_nobody(store, tmp_path):
    (tmp_path / "other").mkdir()
    own, other = Authority(tmp_path), Authority(tmp_path / "other", "another")
    with over_tls(store, shown(own, own), shown(other, own)) as (first, second):
        wait_until(lambda: "certificate" in member(first, second).last_error, "the refusal")
        assert member(first, second).state is MemberState.DOWN


@pytest.mark.scenario("Q16")
def test_what_expires_while_it_waits_at_its_consumers_broker_is_a_dead_letter_of_its_home(store):
    with pair(store) as (first, second):
        sees(second, first, MemberState.UP)
        consumer, producer = StompClient(second.port), StompClient(first.port)
        consumer.subscribe("/queue/short", ack="client-individual", prefetch=1)
        consumer.subscribe("/queue/short", id="idle", selector="FALSE")
        queue = Destination.queue("short")
        # the home may give the consumer one message; a second one waits for its broker's own, which it holds
        StompClient(second.port).send("/queue/short", "own", persistent="true")
        [own] = consumer.take()
        producer.send("/queue/short", "late", persistent="true", expires=str(int(time.time() * 1000) + 400))
        wait_until(lambda: member(second, first).waiting == 1, "it is on its way to the consumer")
        time.sleep(0.5)  # its time is over
        consumer.ack(own)
        wait_until(lambda: first.depth("short") == 0, "it is settled")
        assert first.bodies("ActiveMQ.DLQ") == ["late"]
        assert second.look(lambda: queue in second.node.broker.queues)
        for client in (consumer, producer):
            client.leave()


def test_a_link_that_fell_silent_is_replaced_by_the_next_one(store):
    with pair(store) as (first, second):
        sees(second, first, MemberState.UP)
        names = first.look(
            lambda: [each.client_id for each in first.node.broker.clients.values() if each.cluster_member]
        )
        assert names == [f"cluster:{second.name}"]
        again = RawClient(first.port, None)
        agreement = second.look(lambda: second.node.broker.cluster.agreement)
        again.tell(
            "CONNECT",
            {
                "accept-version": "1.2", "sluice-broker": second.name, "sluice-cluster": agreement,
                "client-id": f"cluster:{second.name}",
            },
        )  # fmt: skip
        assert again.hear().command == "CONNECTED"
        again.close()
        sees(second, first, MemberState.UP)


@pytest.mark.scenario("D07")
def test_while_links_break_again_and_again_nothing_is_lost_and_what_comes_twice_is_flagged(store):
    with pair(store) as (first, second):
        sees(second, first, MemberState.UP)
        count, cuts = 300, 6
        consumer, producer = StompClient(second.port), StompClient(first.port)
        consumer.subscribe("/queue/shaky", ack="client-individual", prefetch=20)
        sending = threading.Thread(
            target=lambda: [producer.send("/queue/shaky", str(number), persistent="true") for number in range(count)]
        )
        sending.start()
        seen: dict[int, int] = {}
        unflagged, cut_at = [], [count * cut // (cuts + 1) for cut in range(1, cuts + 1)]
        while len(seen) < count:
            [message] = consumer.take()
            number = int(message.body)
            if number in seen and message.headers.get("redelivered") != "true":
                unflagged.append(number)
            seen[number] = seen.get(number, 0) + 1
            consumer.ack(message, wait=False)
            if cut_at and len(seen) >= cut_at[0]:
                cut_at.pop(0)
                link = second.look(lambda: second.node.broker.cluster.peers[first.name].link)
                if link is not None:
                    second.look(lambda link=link: link.close("a test cuts it"))
        sending.join()
        wait_until(lambda: first.depth("shaky") == 0, "all are settled")
        assert sorted(seen) == list(range(count))
        assert unflagged == []
        assert second.depth("shaky") == 0
        for client in (consumer, producer):
            client.leave()


def test_of_a_pattern_a_consumer_gets_from_other_brokers_what_its_user_may_read(store):
    users = Authentication(
        (User("brokers", "secret"), User("all", "a", frozenset({"all"})), User("one", "o", frozenset({"one"})))
    )
    rights = (
        ConfiguredGrant(
            Destination.queue("shop.open"),
            read=frozenset({"all", "one"}),
            write=frozenset({"all"}),
            admin=frozenset({"all"}),
        ),
        ConfiguredGrant(
            Destination.queue(">"), read=frozenset({"all"}), write=frozenset({"all"}), admin=frozenset({"all"})
        ),
        ConfiguredGrant(
            Destination.topic(">"), read=frozenset({"all"}), write=frozenset({"all"}), admin=frozenset({"all"})
        ),
    )
    login = {"user": "brokers", "password": "secret"}
    with pair(store, authentication=users, authorization=rights, terms=login, both_terms=login) as (first, second):
        sees(second, first, MemberState.UP)
        consumer = StompClient(second.port, login="one", passcode="o")
        consumer.subscribe("/queue/shop.>")
        producer = StompClient(first.port, login="all", passcode="a")
        for queue in ("secret", "open"):
            producer.send(f"/queue/shop.{queue}", queue, persistent="true")
        assert consumer.bodies() == ["open"]
        wait_until(lambda: first.depth("shop.open") == 0, "it is settled")
        assert first.bodies("shop.secret") == ["secret"]
        assert consumer.messages.empty()
        for client in (consumer, producer):
            client.leave()


def test_openwire_clients_are_told_of_the_brokers_of_the_cluster_as_these_come_and_go(store):
    told = tuple((name, "true") for name in ("updateClusterClients", "updateClusterClientsOnRemove"))
    names = [f"joining-{next(_numbers)}" for _ in range(2)]
    members = tuple(ClusterMember(name, BrokerAddress("127.0.0.1", free_port())) for name in names)
    brokers = []
    for each in members:
        connector = TransportConnector("openwire", "auto", "127.0.0.1", each.address.port, told)
        terms = ClusterSettings(members, retry_ms=100)
        config = replace(default_config(each.name, each.address.port), cluster=terms, connectors=(connector,))
        brokers.append(RunningNode(config, store.url))
    here, there = (f"tcp://127.0.0.1:{each.port}" for each in brokers)
    try:
        with OpenWireClient(brokers[0].port) as client:

            def hears_of(*addresses: str) -> None:
                wait_until(
                    lambda: set(client.next(ConnectionControl).connected_brokers.split(",")) == set(addresses),
                    f"the client is told of {addresses}",
                )

            hears_of(here, there)
            brokers.pop().stop()
            hears_of(here)
    finally:
        for each in brokers:
            each.stop()
