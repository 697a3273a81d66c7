"""Test logins and permissions of an ActiveMQ configuration."""

import pytest

from brokerapp.config import read_config
from brokerapp.model.definitions import CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.clients import PATIENCE, RawClient
from tests.protocol.running_node import RunningNode, node_of
from tests.protocol.websocket_client import WebSocketClient

XML = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="guarded">
  <plugins>
    <simpleAuthenticationPlugin anonymousAccessAllowed="false"><users>
      <authenticationUser username="root" password="secret" groups="admins,users"/>
      <authenticationUser username="alice" password="wonder" groups="users"/>
      <authenticationUser username="guest" password="guest" groups="guests"/>
      <authenticationUser username="lonely" password="" groups=""/>
    </users></simpleAuthenticationPlugin>
    <authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>
      <authorizationEntry topic=">" read="admins" write="admins" admin="admins"/>
      <authorizationEntry queue="USERS.>" read="users" write="users" admin="users"/>
      <authorizationEntry topic="USERS.>" read="users" write="users" admin="users"/>
      <authorizationEntry queue="DROP.>" read="admins" write="guests" admin="admins"/>
      <authorizationEntry topic="VirtualTopic.>" read="users" write="users" admin="users"/>
      <authorizationEntry queue="Consumer.alice.VirtualTopic.Open.>" read="users" write="users" admin="users"/>
      <authorizationEntry topic="DROP.>" read="users" write="users"/>
      <authorizationEntry topic="Shared" read="guests,users" write="users" admin="users"/>
      <authorizationEntry queue="Shared::ours" read="users" write="users" admin="users"/>
      <authorizationEntry queue="Shared::theirs" read="guests,users" write="guests,users" admin="guests,users"/>
      <authorizationEntry queue="ANY.>" read="*" write="*" admin="*"/>
      <authorizationEntry topic="ActiveMQ.Advisory.Consumer.Queue.USERS.>" read="users"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin>
  </plugins>
  <transportConnectors>
    <transportConnector name="stomp" uri="stomp://127.0.0.1:0"/>
    <transportConnector name="ws" uri="ws://127.0.0.1:0"/>
  </transportConnectors>
</broker>
"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def root(connect):
    return connect(login="root", passcode="secret")


@pytest.fixture
def alice(connect):
    return connect(login="alice", passcode="wonder")


@pytest.mark.parametrize(
    "headers",
    [{}, {"login": "alice"}, {"login": "alice", "passcode": "wrong"}, {"login": "nobody", "passcode": "wonder"}],
)
@pytest.mark.scenario("ST-20")
def test_a_wrong_login_gets_one_sentence_and_the_connection_ends(raw, headers):
    client = raw(version=None)
    client.tell("CONNECT", {"accept-version": "1.2", **headers})
    error = client.hear()
    assert (error.command, error.headers["code"]) == ("ERROR", "authentication-failed")
    assert "Traceback" not in error.body.decode()
    assert client.is_closed()


def test_frames_that_come_right_behind_the_login_are_carried_out_after_it(raw):
    client = raw(version=None)
    client.write(
        b"CONNECT\naccept-version:1.2\nlogin:alice\npasscode:wonder\n\n\0"
        b"SEND\ndestination:/queue/USERS.quick\nreceipt:r\n\nx\0"
    )
    assert [client.hear().command, client.hear().command] == ["CONNECTED", "RECEIPT"]


@pytest.mark.parametrize("passcode", ["wonder", "wrong"])
def test_nothing_that_comes_with_the_login_is_done_before_it_is_checked(node, passcode):
    port = next(int(each.rpartition(":")[2]) for each in node.node.addresses if each.startswith("ws:"))
    client = WebSocketClient(port, connect=False)
    client.tell_at_once(
        encode("CONNECT", {"accept-version": "1.2", "login": "alice", "passcode": passcode}),
        encode("SEND", {"destination": f"/queue/USERS.{passcode}", "receipt": "done"}, b"x"),
    )
    answers = [client.hear().command]
    if passcode == "wonder":
        answers.append(client.hear().command)
    assert answers == (["CONNECTED", "RECEIPT"] if passcode == "wonder" else ["ERROR"])
    there = node.look(lambda: Destination.queue(f"USERS.{passcode}") in node.node.broker.queues)
    assert there is (passcode == "wonder")


@pytest.mark.scenario("ST-21")
def test_who_may_not_write_is_refused_and_stays_connected(alice, node):
    alice.send("/queue/OTHERS.a", "x")
    error = alice.error()
    assert error.headers["code"] == "access-denied"
    assert "User alice is not authorized to write to: queue://OTHERS.a" in error.body
    alice.send("/queue/USERS.a", "x")
    assert alice.errors.empty()
    assert node.bodies("USERS.a") == ["x"]


@pytest.mark.scenario("ST-21")
def test_who_may_not_read_is_refused_and_stays_connected(root, alice):
    root.send("/queue/OTHERS.b", "x")
    alice.subscribe("/queue/OTHERS.b")
    assert "not authorized to read from: queue://OTHERS.b" in alice.error().body
    alice.subscribe("/queue/USERS.b", id="allowed")
    alice.send("/queue/USERS.b", "x")
    assert alice.bodies() == ["x"]


def test_who_may_write_but_not_create_can_only_use_queues_that_exist(connect, root):
    guest = connect(login="guest", passcode="guest")
    guest.send("/queue/DROP.new", "x")
    assert "not authorized to create: queue://DROP.new" in guest.error().body
    root.send("/queue/DROP.new", "first")
    guest.send("/queue/DROP.new", "x")
    assert guest.errors.empty()


def test_one_forbidden_element_of_a_list_refuses_the_whole_send(alice, node):
    alice.send("/queue/USERS.c,/queue/OTHERS.c", "x")
    assert "not authorized to write to: queue://OTHERS.c" in alice.error().body
    assert node.depth("USERS.c") == 0


def test_a_wildcard_consumer_gets_only_what_it_may_read(root, alice):
    root.send("/queue/OTHERS.wild.old", "not for alice")
    root.send("/queue/USERS.wild.old", "1")
    alice.subscribe("/queue/*.wild.>", ack="client")
    assert alice.bodies() == ["1"]
    root.send("/queue/OTHERS.wild.later", "not for alice")
    root.send("/queue/USERS.wild.later", "2")
    assert alice.bodies() == ["2"]
    assert alice.has_no_more()


def test_a_wildcard_subscriber_of_topics_gets_only_what_it_may_read(root, alice):
    alice.subscribe("/topic/>")
    root.send("/topic/OTHERS.e", "not for alice")
    root.send("/topic/USERS.e", "1")
    assert alice.bodies() == ["1"]


def test_a_retroactive_subscriber_of_a_pattern_gets_only_what_it_may_read(root, alice):
    for name in ("SECRET.past", "USERS.past"):
        root.send(f"/topic/{name}", name, **{"ActiveMQ.Retain": "true"})
    alice.subscribe("/topic/*.past", **{"activemq.retroactive": "true"})
    assert alice.bodies() == ["USERS.past"]
    assert alice.has_no_more()


def test_a_durable_subscription_of_a_pattern_keeps_only_what_its_user_may_read_while_it_is_offline(root, connect):
    def alice():
        client = connect(login="alice", passcode="wonder", **{"client-id": "alice"})
        client.subscribe("/topic/>", **{"activemq.subscriptionName": "all"})
        return client

    client = alice()
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)
    for name in ("SECRET.kept", "USERS.kept.1", "SECRET.kept", "USERS.kept.2"):
        root.send(f"/topic/{name}", name)
    assert alice().bodies(2) == ["USERS.kept.1", "USERS.kept.2"]


@pytest.fixture
def share(connect):
    """Connects as a user and consumes a shared durable subscription; the client."""

    def subscribe(name, topic=None, login="alice", passcode="wonder"):
        client = connect(login=login, passcode=passcode)
        options = {"activemq.subscriptionName": name, "activemq.shared": "true"}
        client.subscribe(topic or f"/topic/*.{name}", **options)
        return client

    return subscribe


ROOT = {"login": "root", "passcode": "secret"}


def leave(client):
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)


def test_who_may_not_read_all_that_a_shared_subscription_of_a_pattern_gets_does_not_join_it(share, root, name):
    theirs = share(name, **ROOT)
    refused = share(name).error()
    assert refused.headers["code"] == "access-denied"
    assert "what this user may not read" in refused.body
    for number in range(4):
        root.send(f"/topic/SECRET.{name}", str(number))
    assert theirs.bodies(4) == ["0", "1", "2", "3"]


def test_users_of_the_same_groups_and_those_who_may_read_all_of_it_share_a_subscription_of_a_pattern(share, root, name):
    clients = [share(name), share(name), share(name, **ROOT)]
    for number in range(6):
        root.send(f"/topic/USERS.{name}", str(number))
    bodies = [body for client in clients for body in client.bodies(2)]
    assert sorted(bodies) == ["0", "1", "2", "3", "4", "5"]


def test_an_idle_subscription_of_a_pattern_begins_anew_for_who_may_not_read_what_it_keeps(share, root, name):
    leave(share(name, **ROOT))
    root.send(f"/topic/SECRET.{name}", "not for alice")
    root.send(f"/topic/USERS.{name}", "old")
    alice = share(name)
    root.send(f"/topic/USERS.{name}", "new")
    assert alice.bodies() == ["new"]
    leave(alice)
    root.send(f"/topic/USERS.{name}", "kept")
    assert share(name, **ROOT).bodies() == ["kept"]


def test_who_may_not_read_what_a_subscription_keeps_does_not_put_another_in_its_place(share, root, name):
    leave(share(name, f"/topic/SECRET.{name}", **ROOT))
    root.send(f"/topic/SECRET.{name}", "kept")
    refused = share(name, f"/topic/USERS.{name}").error()
    assert refused.headers["code"] == "access-denied"
    assert f"keeps topic://SECRET.{name}, which this user may not read" in refused.body
    theirs = share(name, f"/topic/SECRET.{name}", **ROOT)
    assert theirs.bodies() == ["kept"]
    leave(theirs)
    root.send(f"/topic/SECRET.{name}", "dropped")
    other = share(name, f"/topic/USERS.{name}", **ROOT)
    root.send(f"/topic/USERS.{name}", "new")
    assert other.bodies() == ["new"]
    leave(other)
    assert share(name, f"/topic/USERS.{name}.b").errors.empty()


def test_an_idle_subscription_of_one_topic_goes_on_for_whoever_may_read_that(share, root, name):
    leave(share(name, f"/topic/USERS.{name}", **ROOT))
    root.send(f"/topic/USERS.{name}", "kept")
    assert share(name, f"/topic/USERS.{name}").bodies() == ["kept"]


def test_a_subscription_is_deleted_by_name_by_those_only_who_may_read_its_topics(share, root, alice, name):
    leave(share(name, f"/topic/SECRET.{name}", **ROOT))
    alice.unsubscribe(id="x", **{"activemq.subscriptionName": name})
    assert f"User alice is not authorized to read from: topic://SECRET.{name}" in alice.error().body
    root.send(f"/topic/SECRET.{name}", "kept")
    theirs = share(name, f"/topic/SECRET.{name}", **ROOT)
    assert theirs.bodies() == ["kept"]
    leave(theirs)
    root.unsubscribe(id="x", **{"activemq.subscriptionName": name})
    assert root.errors.empty()


def test_a_wildcard_named_consumer_queue_needs_the_right_to_all_it_collects(root, alice, node):
    """Else whoever may read one consumer queue could collect the messages of every virtual topic."""
    alice.subscribe("/queue/Consumer.*.VirtualTopic.>")
    alice.subscribe("/queue/Consumer.alice.VirtualTopic.Open.>", id="allowed")
    root.send("/topic/VirtualTopic.Secret", "not for alice")
    root.send("/topic/VirtualTopic.Open.a", "for all")
    [message] = alice.take()
    assert (message.headers["subscription"], message.body) == ("allowed", "for all")
    assert alice.has_no_more()


def test_who_may_use_a_topic_but_not_create_it_waits_until_it_is_there(root, alice):
    alice.send("/topic/DROP.new", "x")
    assert "User alice is not authorized to create: topic://DROP.new" in alice.error().body
    alice.subscribe("/topic/DROP.new")
    assert "User alice is not authorized to create: topic://DROP.new" in alice.error().body
    root.send("/topic/DROP.new", "it is there now")
    alice.subscribe("/topic/DROP.new", id="again")
    alice.send("/topic/DROP.new", "x")
    assert alice.bodies() == ["x"]


@pytest.mark.scenario("DL-03")
def test_dead_letters_go_where_their_consumer_may_not_and_are_read_by_who_may(root, alice, node):
    alice.send("/queue/USERS.dying", "bad", persistent="true")
    alice.subscribe("/queue/USERS.dying", ack="client-individual")
    alice.nack(alice.take()[0])
    assert "bad" in node.bodies("ActiveMQ.DLQ")
    alice.subscribe("/queue/ActiveMQ.DLQ", id="dead")
    assert "User alice is not authorized to read from: queue://ActiveMQ.DLQ" in alice.error().body
    alice.send("/queue/ActiveMQ.DLQ", "forged")
    assert "User alice is not authorized to write to: queue://ActiveMQ.DLQ" in alice.error().body
    root.subscribe("/queue/ActiveMQ.DLQ")
    assert root.bodies() == ["bad"]


def test_what_a_composite_forwards_needs_no_right_of_the_sender_at_its_targets(root, alice, node):
    node.define(
        CompositeDestination(Destination.queue("USERS.door"), (ForwardTarget(Destination.queue("OTHERS.behind")),))
    )
    try:
        alice.send("/queue/USERS.door", "let in")
        assert alice.errors.empty()
        assert node.bodies("OTHERS.behind") == ["let in"]
    finally:
        node.define(VirtualTopic(name="VirtualTopic.>"))


def test_a_star_in_the_place_of_a_group_is_everybody_who_is_in_one(alice, connect):
    alice.send("/queue/ANY.a", "x")
    assert alice.errors.empty()
    lonely = connect(login="lonely", passcode="")
    lonely.send("/queue/ANY.a", "x")
    assert "User lonely is not authorized to write to: queue://ANY.a" in lonely.error().body


@pytest.mark.scenario("AV-01")
def test_advisories_are_read_by_those_who_may_and_nobody_needs_to_create_their_topics(root, alice, connect):
    alice.subscribe("/topic/ActiveMQ.Advisory.Connection")
    assert "not authorized to read from: topic://ActiveMQ.Advisory.Connection" in alice.error().body
    alice.subscribe("/topic/ActiveMQ.Advisory.Consumer.Queue.USERS.advised", id="allowed")
    root.subscribe("/queue/USERS.advised", id="watched")
    [told] = alice.take()
    assert told.headers["subscription"] == "allowed"


def test_an_empty_password_is_not_the_same_as_none(raw):
    for headers, answer in (
        ({"login": "lonely", "passcode": ""}, "CONNECTED"),
        ({"login": "lonely"}, "ERROR"),
        ({"passcode": ""}, "ERROR"),
        ({"login": "", "passcode": ""}, "ERROR"),
    ):
        client = raw(version=None)
        client.tell("CONNECT", {"accept-version": "1.2", **headers})
        assert client.hear().command == answer


GUEST_XML = XML.replace(
    'anonymousAccessAllowed="false"', 'anonymousAccessAllowed="true" anonymousGroup="guests"'
).replace('brokerName="guarded"', 'brokerName="with guests"')


@pytest.fixture(scope="module")
def node_with_guests(store, tmp_path_factory):
    file = tmp_path_factory.mktemp("guests") / "activemq.xml"
    file.write_text(GUEST_XML)
    running = RunningNode(read_config(file), store.url)
    yield running
    running.stop()


def test_only_who_says_neither_name_nor_password_is_the_configured_guest(node_with_guests, connect):
    port = node_with_guests.port
    connect(port=port, login="root", passcode="secret").send("/queue/DROP.guests", "first")
    guest = connect(port=port)
    guest.send("/queue/DROP.guests", "x")
    assert guest.errors.empty()
    guest.send("/queue/USERS.a", "x")
    assert "User anonymous is not authorized to write to: queue://USERS.a" in guest.error().body
    for headers in ({"login": "root"}, {"passcode": "x"}, {"login": "nobody", "passcode": "x"}):
        client = RawClient(port, version=None)
        client.tell("CONNECT", {"accept-version": "1.2", **headers})
        assert client.hear().headers["code"] == "authentication-failed"
        client.close()


@pytest.mark.scenario("F17")
def test_a_grant_for_one_subscription_queue_is_for_that_queue_only(connect, alice):
    guest = connect(login="guest", passcode="guest")
    alice.subscribe("/queue/Shared::ours")
    guest.subscribe("/queue/Shared::ours", id="refused", wait=False)
    assert guest.error().headers["code"] == "access-denied"
    guest.subscribe("/queue/Shared::theirs")
    alice.send("/topic/Shared", "to both")
    assert alice.bodies() == guest.bodies() == ["to both"]


def test_what_operators_send_needs_no_login_of_a_client(node, name):
    """Their rights are the console's to decide: the broker's are for clients."""
    message = {"destination": f"/queue/operators.{name}", "body": "eA=="}
    assert node.ask(lambda admin: admin.send(message))["count"] == 1
    assert node.bodies(f"operators.{name}") == ["x"]
