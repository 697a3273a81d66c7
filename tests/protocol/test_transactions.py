"""Test that a transaction takes effect at COMMIT as a whole, or never."""

from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.running_node import RunningNode


@pytest.fixture(params=["1.0", "1.1", "1.2"])
def client(request, connect):
    return connect(request.param)


@pytest.mark.scenario("ST-18")
def test_sends_are_seen_at_commit_in_order(client, node, name):
    client.frame("BEGIN", transaction="t")
    for body in "abc":
        client.send(f"/queue/{name}", body, transaction="t")
    assert node.bodies(name) == []
    client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["a", "b", "c"]


def test_persistent_messages_of_a_transaction_come_first_in_queues_as_in_activemq(client, node, name):
    client.subscribe(f"/topic/{name}", id="t")
    client.frame("BEGIN", transaction="t")
    for number in range(6):
        for kind in ("queue", "topic"):
            client.send(f"/{kind}/{name}", str(number), transaction="t", persistent=str(number % 2 == 0).lower())
    client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["0", "2", "4", "1", "3", "5"]
    assert [each.body for each in client.take(6)] == ["0", "1", "2", "3", "4", "5"]


def test_sends_vanish_at_abort(client, node, name):
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "a", transaction="t")
    client.frame("ABORT", transaction="t")
    client.send(f"/queue/{name}", "b")
    assert node.bodies(name) == ["b"]


@pytest.mark.scenario("ST-18")
def test_a_name_may_be_used_again_after_its_end(client, node, name):
    for body in "ab":
        client.frame("BEGIN", transaction="t")
        client.send(f"/queue/{name}", body, transaction="t")
        client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["a", "b"]


@pytest.mark.scenario("ST-42")
def test_acks_take_effect_at_commit(client, node, name):
    for body in "abc":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    a, _b, c = client.take(3)
    client.frame("BEGIN", transaction="t")
    client.ack(c, transaction="t")
    client.ack(a, transaction="t")
    assert node.depth(name) == 3
    client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["b"]
    assert node.numbers(Destination.queue(name)).DequeueCount == 2


@pytest.mark.scenario("ST-27")
def test_acks_in_a_transaction_make_room_for_more(client, name):
    for number in range(10):
        client.send(f"/queue/{name}", str(number))
    client.subscribe(f"/queue/{name}", ack="client", prefetch=1)
    client.frame("BEGIN", transaction="t")
    for number in range(10):
        [message] = client.take()
        assert message.body == str(number)
        client.ack(message, transaction="t")


@pytest.mark.scenario("S1-16", "S2-08", "S15")
def test_after_abort_the_acks_can_be_given_again_with_the_same_ids(client, node, name):
    for body in "abc":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    messages = client.take(3)
    client.frame("BEGIN", transaction="t")
    for message in messages:
        client.ack(message, transaction="t")
    client.frame("ABORT", transaction="t")
    assert client.has_no_more()  # they are not delivered again
    client.ack(messages[1])
    assert node.bodies(name) == ["a", "c"]
    client.frame("BEGIN", transaction="u")
    client.ack(messages[0], transaction="u")
    client.frame("COMMIT", transaction="u")
    assert node.bodies(name) == ["c"]
    assert client.errors.empty()


def test_after_abort_an_ack_in_mode_client_settles_no_later_message(client, node, name):
    for body in "abcd":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client")
    messages = client.take(4)
    client.frame("BEGIN", transaction="t")
    client.ack(messages[1], transaction="t")
    client.frame("ABORT", transaction="t")
    client.ack(messages[0])
    assert node.bodies(name) == ["b", "c", "d"]
    client.ack(messages[2])
    assert node.bodies(name) == ["d"]


def test_a_broken_connection_rolls_back_and_gives_back(client, connect, node, name):
    for body in "ab":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    a, _b = client.take(2)
    client.frame("BEGIN", transaction="t")
    client.ack(a, transaction="t")
    client.send(f"/queue/{name}.out", "never", transaction="t")
    client.break_off()
    other = connect()
    other.subscribe(f"/queue/{name}")
    assert [(each.body, each.headers["redelivered"]) for each in other.take(2)] == [("a", "true"), ("b", "true")]
    assert node.bodies(f"{name}.out") == []


def test_unsubscribing_and_aborting_gives_the_messages_to_others(client, connect, name):
    client.send(f"/queue/{name}", "a")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    [message] = client.take()
    client.frame("BEGIN", transaction="t")
    client.ack(message, transaction="t")
    client.unsubscribe()
    other = connect()
    other.subscribe(f"/queue/{name}")
    assert other.has_no_more()
    client.frame("ABORT", transaction="t")
    [again] = other.take()
    assert (again.body, again.headers["redelivered"]) == ("a", "true")


@pytest.mark.parametrize(
    ("command", "headers", "says"),
    [
        ("BEGIN", {}, "without a transaction header"),
        ("COMMIT", {"transaction": "unknown"}, "transaction 'unknown' is not open"),
        ("ABORT", {"transaction": "unknown"}, "transaction 'unknown' is not open"),
        ("SEND", {"transaction": "unknown", "destination": "/queue/never"}, "transaction 'unknown' is not open"),
        ("BEGIN", {"transaction": "open"}, "is open already"),
    ],
)
def test_what_makes_no_sense_gets_an_error_and_the_connection_stays(connect, command, headers, says):
    client = connect()
    client.frame("BEGIN", transaction="open")
    client.frame(command, **headers)
    error = client.error()
    assert says in error.body
    assert error.headers["receipt-id"]
    client.round_trip()


def test_a_nack_cannot_be_part_of_a_transaction(connect, name):
    client = connect()
    client.send(f"/queue/{name}", "a")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    [message] = client.take()
    client.frame("BEGIN", transaction="t")
    client.nack(message, transaction="t")
    assert "NACK cannot be part of a transaction" in client.error().body
    client.ack(message)
    assert client.errors.empty()


def test_a_transaction_over_a_virtual_topic_reaches_every_queue_at_commit(connect, node, name):
    client, topic = connect(), f"VirtualTopic.{name}"
    for consumer in "AB":
        client.subscribe(f"/queue/Consumer.{consumer}.{topic}", id=consumer, prefetch=0)
    client.frame("BEGIN", transaction="t")
    for body in "ab":
        client.send(f"/topic/{topic}", body, transaction="t")
    assert node.bodies(f"Consumer.A.{topic}") == []
    client.frame("COMMIT", transaction="t")
    assert node.bodies(f"Consumer.A.{topic}") == node.bodies(f"Consumer.B.{topic}") == ["a", "b"]


def test_what_was_refused_without_a_receipt_lets_nothing_of_the_transaction_happen(client, node, name):
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "a", transaction="t")
    client.send("/queue/", "nowhere", wait=False, transaction="t")
    assert "is not a destination" in client.error().headers["message"]
    client.frame("COMMIT", wait=False, transaction="t")
    assert "was rolled back, as a SEND in it was refused" in client.error().headers["message"]
    assert Destination.queue(name) not in node.node.broker.queues or node.bodies(name) == []
    client.frame("BEGIN", transaction="t")  # its name is free again


def test_what_was_refused_with_a_receipt_is_the_clients_to_judge(client, node, name):
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "a", transaction="t")
    client.send("/queue/", "nowhere", transaction="t")
    client.error()
    client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["a"]


def test_a_transaction_may_be_limited_by_the_configuration(store, name):
    config = replace(default_config(f"limited-{name}", 0), max_uncommitted_count=3)
    running = RunningNode(config, store.url)
    client = StompClient(running.port)
    client.frame("BEGIN", transaction="t")
    for body in "abc":
        client.send(f"/queue/{name}", body, transaction="t")
    client.send(f"/queue/{name}", "d", transaction="t")
    assert "at most 3 messages and acks" in client.error().headers["message"]
    client.frame("COMMIT", transaction="t")
    assert running.bodies(name) == ["a", "b", "c"]
    client.leave()
    running.stop()


@pytest.mark.parametrize("reads", ["one", "several"])
def test_listeners_of_several_topics_get_messages_of_transactions_in_the_order_of_sends_and_commits(
    raw, connect, name, reads
):
    sender, listener = raw(), connect()
    listener.subscribe(f"/topic/{name}.>")

    def transaction(id, numbers):
        sends = [
            encode("SEND", {"destination": f"/topic/{name}.{number % 2}", "transaction": id}, str(number).encode())
            for number in numbers
        ]
        return [encode("BEGIN", {"transaction": id}), *sends]

    frames = [*transaction("t", range(4, 10)), *transaction("u", range(4))]
    frames += [encode("COMMIT", {"transaction": id, "receipt": id}) for id in "ut"]
    for part in [b"".join(frames)] if reads == "one" else frames:
        sender.write(part)
    assert [each.body for each in listener.take(10)] == list("0123456789")


@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("queues", [1, 2])
def test_of_a_read_that_goes_beyond_the_limit_of_a_transaction_the_messages_before_it_stay(store, name, ask, queues):
    config = replace(default_config(f"limited-{name}", 0), max_uncommitted_count=3)
    running = RunningNode(config, store.url)
    raw = RawClient(running.port)
    sends = [
        encode("SEND", {"destination": f"/queue/{name}.{number % queues}", "transaction": "t",
                        **({"receipt": body} if ask else {})}, body.encode())
        for number, body in enumerate("abcde")
    ]  # fmt: skip
    commit = encode("COMMIT", {"transaction": "t", "receipt": "commit"})
    raw.write(b"".join([encode("BEGIN", {"transaction": "t"}), *sends, commit]))
    heard = [(frame.command, frame.headers.get("receipt-id")) for frame in (raw.hear() for _ in range(6 if ask else 3))]
    if ask:  # the client is told which are missing
        assert heard == [*(("RECEIPT", body) for body in "abc"), ("ERROR", "d"), ("ERROR", "e"), ("RECEIPT", "commit")]
    else:
        assert heard == [("ERROR", None), ("ERROR", None), ("ERROR", "commit")]
    raw.tell("SEND", {"destination": f"/queue/{name}.0", "receipt": "last"}, b"last")
    assert raw.hear().headers["receipt-id"] == "last"
    kept = [*(("abc" if queues == 1 else "ac") if ask else ""), "last"]
    assert running.bodies(f"{name}.0") == kept
    raw.socket.close()
    running.stop()


def test_transactions_of_one_read_come_true_one_after_the_other_between_what_is_sent_outside(raw, node, name):
    queue, client = f"/queue/{name}", raw()

    def send(body, transaction=None):
        return encode("SEND", {"destination": queue, **({"transaction": transaction} if transaction else {})}, body)

    def end(command, name):
        return encode(command, {"transaction": name, "receipt": f"{command} {name}"})

    client.write(
        b"".join([
            end("BEGIN", "t"), send(b"3", "t"), send(b"1"), end("BEGIN", "u"), send(b"5", "u"), send(b"4", "t"),
            send(b"2"), end("COMMIT", "t"), end("BEGIN", "v"), send(b"never", "v"), send(b"6", "u"), end("COMMIT", "u"),
            end("ABORT", "v"), send(b"7"), end("COMMIT", "v"), end("BEGIN", "t"), send(b"8", "t"), end("COMMIT", "t"),
        ])
    )  # fmt: skip
    heard = [client.hear() for _ in range(9)]
    assert [each.headers["receipt-id"] for each in heard if each.command == "ERROR"] == ["COMMIT v"]
    assert node.bodies(name) == list("12345678")


def test_a_transaction_that_would_keep_the_store_too_long_is_refused_when_it_grows(client, node, name, monkeypatch):
    monkeypatch.setattr("brokerapp.engine.clients.client.MAX_TRANSACTION_COPIES", 5)
    queues = [f"Consumer.{number}.VirtualTopic.{name}" for number in range(4)]
    for queue in queues:
        client.subscribe(f"/queue/{queue}", id=queue, prefetch=0)
    client.frame("BEGIN", transaction="t")
    for _ in range(2):
        client.send(f"/topic/VirtualTopic.{name}", "x", transaction="t")
    client.send(f"/topic/VirtualTopic.{name}", "too much", transaction="t")
    assert "at most 5 copies" in client.error().headers["message"]
    client.frame("ABORT", transaction="t")
    assert [node.depth(queue) for queue in queues] == [0, 0, 0, 0]
