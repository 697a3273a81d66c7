"""Test temporary destinations and replies: owner, permissions and deletion."""

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, MirroredQueue
from brokerapp.model.destination import Destination, DestinationKind
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, named
from tests.waiting import wait_until


def asked(server, name, client, own="/temp-queue/answers"):
    """What a server is told to reply to when a client asks."""
    server.subscribe(f"/queue/{name}", id=f"requests-{name}")
    client.send(f"/queue/{name}", "ask", reply_to=own)
    return server.take()[0].headers["reply-to"]


def temporaries(node):
    """The logs of temporary queues that exist."""
    return node.look(lambda: [log.name for log in node.node.broker.queues if log.destination.is_temporary])


@pytest.mark.scenario("ST-29")
def test_a_client_sends_to_its_own_temporary_queue_and_consumes_later(connect):
    client = connect()
    client.send("/temp-queue/box", "kept", persistent="true")
    client.subscribe("/temp-queue/box", ack="client-individual")
    [message] = client.take()
    assert (message.headers["destination"], message.body) == ("/temp-queue/box", "kept")
    client.ack(message)
    assert client.errors.empty()


@pytest.mark.scenario("ST-37")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_the_owner_sees_its_own_name_and_others_one_they_can_send_to(connect, name, kind):
    client, server = connect(), connect()
    client.subscribe(f"/temp-{kind}/answers")
    target = asked(server, name, client, f"/temp-{kind}/answers")
    assert target.startswith(f"/remote-temp-{kind}/ID:")
    server.send(target, "answer", correlation_id="17")
    [message] = client.take()
    assert message.headers["destination"] == f"/temp-{kind}/answers"
    assert message.headers["correlation-id"] == "17"
    client.send(f"/queue/{name}.self", "", reply_to=f"/temp-{kind}/answers", jms="1")
    client.subscribe(f"/queue/{name}.self", id="self")
    assert client.take()[0].headers["reply-to"] == f"/temp-{kind}/answers"


@pytest.mark.scenario("ST-37")
def test_a_temporary_queue_exists_from_its_mention_as_a_reply_to(connect, name):
    client, server = connect("1.1"), connect("1.0")
    target = asked(server, name, client)
    server.send(target, "early")
    client.subscribe("/temp-queue/answers")
    assert client.bodies() == ["early"]


@pytest.mark.scenario("ST-33")
@pytest.mark.parametrize(
    "text", ["just a word", "/queue/plain", "queue://native", "/temp-other/x", "/remote-temp-queue/gone"]
)
def test_a_reply_to_that_names_nothing_of_the_connections_own_comes_back_unchanged(connect, name, text):
    client = connect()
    client.send(f"/queue/{name}", "ask", reply_to=text)
    client.subscribe(f"/queue/{name}")
    assert client.take()[0].headers["reply-to"] == text


def test_two_clients_call_different_queues_by_the_same_name(connect, name):
    one, other, server = connect(), connect(), connect()
    targets = []
    for client in (one, other):
        client.subscribe("/temp-queue/mine")
        targets.append(asked(server, f"{name}.{len(targets)}", client, "/temp-queue/mine"))
    for number, target in enumerate(targets):
        server.send(target, str(number))
    assert [one.bodies(), other.bodies()] == [["0"], ["1"]]
    assert one.has_no_more()
    assert other.has_no_more()


def test_replies_come_to_each_of_a_temporary_topics_subscriptions_and_to_no_wildcard(connect, name):
    client, server, nosy = connect(), connect(), connect()
    news = asked(server, name, client, "/temp-topic/news")
    post = asked(server, f"{name}.2", client, "/temp-queue/post")
    nosy.subscribe("/topic/>")
    nosy.subscribe("/queue/>", id="queues", ack="client")
    client.subscribe("/temp-topic/news", id="1")
    client.subscribe("/temp-topic/news", id="2")
    client.subscribe("/temp-queue/post", id="3")
    server.send(news, "here")
    server.send(post, "posted")
    assert sorted((each.headers["subscription"], each.body) for each in client.take(3)) == [
        ("1", "here"),
        ("2", "here"),
        ("3", "posted"),
    ]
    nosy.round_trip()
    seen = [nosy.messages.get().body for _ in range(nosy.messages.qsize())]
    assert not {"here", "posted"} & set(seen)


@pytest.mark.scenario("T09")
def test_others_may_consume_from_it_and_see_its_foreign_name(connect, name):
    client, other = connect(), connect()
    target = asked(other, name, client)
    other.subscribe(target, id="foreign", ack="client-individual")
    client.send("/temp-queue/answers", "1")
    [message] = other.take()
    assert message.headers["destination"] == target
    other.ack(message)
    assert other.errors.empty()


@pytest.mark.scenario("T02")
def test_it_is_gone_with_its_owner_and_all_it_holds(connect, node, name):
    client, server = connect(), connect()
    target = asked(server, name, client)
    server.send(target, "waits", persistent="true")
    server.subscribe(target, id="foreign", ack="client-individual", prefetch=1)
    [held] = server.take()
    native = str(Destination.parse(target))
    assert native in temporaries(node)
    client.break_off()
    wait_until(lambda: native not in temporaries(node), "the end of the temporary queue")
    server.send(target, "late", wait=False)
    error = server.error()
    assert error.headers["message"] == f"the destination {native} does not exist: its connection was closed"
    server.ack(held)
    assert "not waiting for one" in server.error().headers["message"]
    server.subscribe(target, id="again", wait=False)
    assert "does not exist" in server.error().headers["message"]
    wait_until(lambda: native not in node.ask(stored_logs), "its end in the store, which is told later")


async def stored_logs(admin):
    return await admin._store.logs.all_attributes()


def test_a_destination_that_never_was_is_refused(connect):
    client = connect()
    client.send("/remote-temp-queue/ID:nobody:1", "lost?", wait=False)
    assert "temp-queue://ID:nobody:1 does not exist" in client.error().headers["message"]
    client.send("/remote-temp-topic/ID:nobody:1", "lost?", wait=False)
    assert "temp-topic://ID:nobody:1 does not exist" in client.error().headers["message"]


def test_a_transaction_whose_temporary_target_is_gone_happens_not_at_all(connect, node, name):
    client, server = connect(), connect()
    target = asked(server, name, client)
    server.send(f"/queue/{name}.work", "job", persistent="true")
    server.subscribe(f"/queue/{name}.work", id="work", ack="client-individual")
    [job] = server.take()
    server.frame("BEGIN", transaction="t")
    server.send(f"/queue/{name}.other", "part", transaction="t", persistent="true")
    server.send(target, "answer", transaction="t")
    server.ack(job, transaction="t")
    client.leave()
    wait_until(lambda: not temporaries(node), "the end of the temporary queue")
    server.frame("COMMIT", transaction="t")
    assert "does not exist" in server.error().headers["message"]
    assert node.depth(f"{name}.other") == 0
    server.ack(job)
    wait_until(lambda: node.depth(f"{name}.work") == 0, "the ack of the job")
    assert server.errors.empty()


def test_the_owners_transactions_end_with_it(connect, node, name):
    client = connect()
    client.send("/temp-queue/box", "m")
    client.subscribe("/temp-queue/box", ack="client-individual")
    [message] = client.take()
    client.frame("BEGIN", transaction="t")
    client.ack(message, transaction="t")
    client.break_off()
    wait_until(lambda: not temporaries(node), "the end of the temporary queue")


def test_a_reply_may_go_to_a_list_and_a_list_says_where_it_was_sent(connect, name):
    client, server = connect(), connect()
    client.subscribe("/temp-queue/answers")
    target = asked(server, name, client)
    server.send(f"/queue/{name}.log,{target}", "both")
    [message] = client.take()
    native = str(Destination.parse(target))
    assert message.headers["destination"] == "/temp-queue/answers"
    assert message.headers["original-destination"] == f"/queue/{name}.log,{native}"
    client.send(f"/temp-queue/answers,/queue/{name}.log", "own")
    assert client.bodies() == ["own"]
    server.subscribe(f"/queue/{name}.log", id="log")
    assert named(server.take(2)) == ["both", "own"]


def test_requests_may_come_by_way_of_a_virtual_topic(connect, name):
    client, server = connect(), connect()
    server.subscribe(f"/queue/Consumer.S.VirtualTopic.{name}")
    client.subscribe("/temp-queue/answers")
    client.send(f"/topic/VirtualTopic.{name}", "ask", reply_to="/temp-queue/answers")
    server.send(server.take()[0].headers["reply-to"], "answer")
    assert client.bodies() == ["answer"]


@pytest.mark.scenario("CD-13")
def test_the_mirror_of_a_temporary_queue_goes_with_it(connect, node):
    node.define(DEFAULT_VIRTUAL_TOPIC, MirroredQueue())
    try:
        client, watcher = connect(), connect()
        watcher.subscribe("/topic/VirtualTopic.Mirror.>")
        client.send("/temp-queue/seen", "m")
        [copy] = watcher.take()
        mirror = Destination.parse(copy.headers["destination"])
        known = lambda: node.look(lambda: mirror in node.node.broker.counters)  # noqa: E731
        watcher.unsubscribe()
        assert known()
        client.leave()
        wait_until(lambda: not known(), "the end of the mirror")
        node.define(DEFAULT_VIRTUAL_TOPIC, MirroredQueue(temporary=False))
        watcher.subscribe("/topic/VirtualTopic.Mirror.>")
        another = connect()
        another.send("/temp-queue/unseen", "m")
        assert watcher.has_no_more()
    finally:
        node.define(DEFAULT_VIRTUAL_TOPIC)


def test_a_name_that_can_be_none_is_refused(connect):
    client = connect()
    for text, rule in (("/temp-queue/", "is not a destination"), ("/temp-topic/" + "a" * 1025, "at most 1024")):
        client.send(text, "", wait=False)
        assert rule in client.error().headers["message"]


def test_many_come_and_go_without_a_trace(connect, node):
    before = node.look(lambda: len(node.node.broker.counters.destinations()))
    for number in range(30):
        client = connect()
        client.send(f"/temp-queue/{number}", "m", persistent="true")
        client.send(f"/temp-topic/{number}", "m")
        client.leave()
    wait_until(lambda: not temporaries(node), "the end of all temporary queues")
    wait_until(
        lambda: node.look(lambda: len(node.node.broker.counters.destinations())) <= before + 1,
        "the end of their numbers",
    )


@pytest.mark.scenario("T04")
def test_none_survives_a_restart(store):
    config = default_config("temporaries-restart", 0)
    first = RunningNode(config, store.url)
    client = StompClient(first.port)
    client.send("/temp-queue/box", "m", persistent="true")
    client.send("/queue/plain", "m", persistent="true")
    first.stop()
    again = RunningNode(config, store.url)
    try:
        wait_until(lambda: list(again.ask(stored_logs)) == ["queue://plain"], "only the plain queue")
        assert again.depth("plain") == 1
        assert not temporaries(again)
        assert not [
            each
            for each in again.look(lambda: again.node.broker.counters.destinations())
            if each.kind is DestinationKind.TEMP_QUEUE
        ]
    finally:
        again.stop()
