"""Test operations through BrokerAdmin and brokerctl on a running broker with clients."""

import json
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from brokerapp.config import default_config
from brokerapp.errors import (
    DefinitionConflict,
    DefinitionRefused,
    DestinationNotFound,
    RequestRefused,
    SelectorSyntaxError,
)
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.data_directory import DataDirectory
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[2]
queue, topic = Destination.queue, Destination.topic


def purge(node, name):
    return node.ask(lambda admin: admin.purge(queue(name)))


# -- purging


def test_purge_removes_what_waits_and_leaves_what_is_in_flight(connect, node, name):
    client = connect()
    for number in range(20):
        client.send(f"/queue/{name}", str(number))
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=3)
    messages = client.take(3)
    assert purge(node, name) == 17
    assert node.bodies(name) == ["0", "1", "2"]
    for message in messages:
        client.ack(message)
    assert node.depth(name) == 0
    client.send(f"/queue/{name}", "new")
    assert client.bodies() == ["new"]


def test_purge_leaves_acks_of_an_open_transaction_alone(connect, node, name):
    client = connect()
    for body in "abc":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=1)
    [a] = client.take()
    client.frame("BEGIN", transaction="t")
    client.ack(a, transaction="t")
    client.take()
    assert purge(node, name) == 1
    client.frame("ABORT", transaction="t")
    client.ack(a)
    assert node.bodies(name) == ["b"]


@pytest.mark.parametrize("ack", ["auto", "client-individual"])
def test_purge_while_messages_come_and_go_leaves_numbers_true_and_nothing_behind(connect, node, name, ack):
    """Every message is consumed once or purged, and what remains is what the depth says."""
    producer, consumer = connect(), connect()
    virtual = f"VirtualTopic.{name}"
    kept = f"Consumer.kept.{virtual}"
    for consumer_queue in (kept, f"Consumer.purged.{virtual}"):
        consumer.subscribe(f"/queue/{consumer_queue}", id=consumer_queue)
        consumer.unsubscribe(consumer_queue)
    purged_queue, count, purged = f"Consumer.purged.{virtual}", 1500, 0

    def produce():
        for number in range(count):
            producer.send(f"/topic/{virtual}", str(number), wait=number % 50 == 49)

    def consume():
        while True:
            message = consumer.messages.get()
            if message is None:
                return
            seen.append(message.body)
            if ack != "auto":
                consumer.ack(message, wait=False)

    seen: list[str] = []
    consumer.subscribe(f"/queue/{purged_queue}", ack=ack, prefetch=20)
    threads = [threading.Thread(target=work) for work in (produce, consume)]
    for thread in threads:
        thread.start()
    while threads[0].is_alive():
        purged += purge(node, purged_queue)
    wait_until(
        lambda: node.depth(purged_queue) == 0 and len(seen) + purged >= count, "everything is consumed or purged"
    )
    consumer.messages.put(None)
    threads[1].join()
    assert consumer.has_no_more()
    assert len(seen) == len(set(seen))
    assert len(seen) + purged == count
    assert node.browse(purged_queue) == []
    assert node.bodies(kept) == [str(number) for number in range(count)]  # their payloads are shared
    numbers = node.numbers(queue(purged_queue))
    assert (numbers.EnqueueCount, numbers.DequeueCount, numbers.InFlightCount) == (count, count, 0)


def test_purging_what_does_not_exist_is_refused(node):
    with pytest.raises(DestinationNotFound, match="queue://nowhere not found"):
        purge(node, "nowhere")


# -- creating and deleting


def test_a_created_queue_exists_and_a_virtual_topic_feeds_it(connect, node, name):
    consumer_queue = queue(f"Consumer.A.VirtualTopic.{name}")
    node.ask(lambda admin: admin.create(consumer_queue))
    connect().send(f"/topic/VirtualTopic.{name}", "x")
    assert node.bodies(consumer_queue.name) == ["x"]


def test_a_deleted_queue_is_gone_with_its_messages_and_fed_no_more(connect, node, name):
    client, consumer_queue = connect(), f"Consumer.A.VirtualTopic.{name}"
    client.subscribe(f"/queue/{consumer_queue}", ack="client-individual")
    client.unsubscribe()
    client.send(f"/topic/VirtualTopic.{name}", "x")
    assert node.ask(lambda admin: admin.delete(queue(consumer_queue))) == 1
    client.send(f"/topic/VirtualTopic.{name}", "y")
    with pytest.raises(DestinationNotFound):
        node.browse(consumer_queue)


def test_a_queue_with_consumers_is_not_deleted(connect, node, name):
    connect().subscribe(f"/queue/{name}")
    with pytest.raises(RequestRefused, match="has consumers"):
        node.ask(lambda admin: admin.delete(queue(name)))


def test_a_queue_deleted_between_sends_comes_back_empty_and_numbers_stay_true(connect, node, name):
    producer = connect()
    producer.send(f"/queue/{name}", "old")
    node.ask(lambda admin: admin.delete(queue(name)))
    producer.send(f"/queue/{name}", "new")
    assert node.bodies(name) == ["new"]
    assert node.numbers(queue(name)).ProducerCount == 1
    producer.leave()
    assert node.numbers(queue(name)).ProducerCount == 0


def test_the_numbers_go_on_after_a_producer_of_a_deleted_queue_left(connect, node, name):
    producer, other = connect(), connect()
    producer.send(f"/queue/{name}", "x")
    node.ask(lambda admin: admin.delete(queue(name)))
    producer.leave()
    other.send(f"/queue/{name}.other", "x")

    def published() -> bool:
        _, rows, _ = node.ask(lambda admin: admin.stats())
        return any(row.destination == queue(f"{name}.other") and row.QueueSize == 1 for row in rows)

    wait_until(published, "the other queue's numbers")


def test_a_queue_deleted_while_a_transaction_holds_a_message_for_it_exists_again_at_commit(connect, node, name):
    client = connect()
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "x", transaction="t")
    node.ask(lambda admin: admin.delete(queue(name)))
    client.frame("COMMIT", transaction="t")
    assert node.bodies(name) == ["x"]
    client.subscribe(f"/queue/{name}")
    assert client.bodies() == ["x"]


def test_numbers_come_with_versions_so_that_a_reader_learns_only_what_changed(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "x")

    def row(since):
        version, rows, _ = node.ask(lambda admin: admin.stats(since))
        return version, {each.destination: each for each in rows}.get(queue(name))

    wait_until(lambda: (found := row(0)[1]) is not None and found.QueueSize == 1, "the queue's numbers")
    wait_until(lambda: row(row(0)[0])[1] is None, "nothing to change any more")
    version, _ = row(0)
    client.send(f"/queue/{name}", "y")
    wait_until(lambda: (found := row(version)[1]) is not None and found.QueueSize == 2, "the change")
    node.ask(lambda admin: admin.delete(queue(name)))
    wait_until(lambda: queue(name) in node.ask(lambda admin: admin.stats(version))[2], "the deletion")


def test_topics_count_their_wildcard_subscribers(connect, node, name):
    client = connect()
    client.subscribe(f"/topic/{name}.*")
    client.send(f"/topic/{name}.a", "x")
    assert node.numbers(topic(f"{name}.a")).ConsumerCount == 1
    client.unsubscribe()
    assert node.numbers(topic(f"{name}.a")).ConsumerCount == 0


# -- browsing


def test_browsing_consumes_nothing_pages_and_selects(connect, node, name):
    client = connect()
    for number in range(30):
        client.send(f"/queue/{name}", str(number), size=str(number))
    first = node.ask(lambda admin: admin.browse(queue(name), limit=10))
    rest = node.ask(lambda admin: admin.browse(queue(name), after=first.next, limit=100))
    assert [each.body for each in (*first.messages, *rest.messages)] == [str(n).encode() for n in range(30)]
    assert rest.next is None
    selected = node.ask(lambda admin: admin.browse(queue(name), selector="size > 27"))
    assert ([each.body for each in selected.messages], selected.scanned) == ([b"28", b"29"], 30)
    [one] = node.ask(lambda admin: admin.message(queue(name), first.messages[3].seq)).messages
    assert one == first.messages[3]
    assert node.depth(name) == 30
    with pytest.raises(SelectorSyntaxError):
        node.ask(lambda admin: admin.browse(queue(name), selector="size >"))


def test_browsing_pages_through_messages_larger_than_one_answer_of_the_store(connect, node, name):
    client = connect()
    bodies = [str(number) * 1_500_000 for number in range(8)]
    for body in bodies:
        client.send(f"/queue/{name}", body)
    assert node.bodies(name) == bodies


# -- definitions


def test_a_definition_that_cannot_work_is_refused_and_nothing_changes(node, name):
    before = node.ask(lambda admin: admin.definitions())
    there_and_back = (
        CompositeDestination(queue(f"{name}.a"), (ForwardTarget(queue(f"{name}.b")),)),
        CompositeDestination(queue(f"{name}.b"), (ForwardTarget(queue(f"{name}.a")),)),
    )
    with pytest.raises(DefinitionRefused, match="definitions form a loop"):
        node.define(*there_and_back)
    with pytest.raises(DefinitionRefused, match="is wrong at position"):
        node.define(CompositeDestination(queue(name), (ForwardTarget(queue(f"{name}.b"), "a ="),)))
    with pytest.raises(DefinitionRefused, match="defined twice"):
        node.define(there_and_back[0], there_and_back[0])
    assert node.ask(lambda admin: admin.definitions()) == before


def test_of_two_changes_at_once_one_is_told_to_read_again(node):
    async def twice(admin):
        current = await admin.definitions()
        await admin.define(current, "one")
        with pytest.raises(DefinitionConflict):
            await admin.define(current, "other")
        return [each["author"] for each in await admin.history(1)]

    assert node.ask(twice) == ["one"]


# -- brokerctl, on a live node and on the store that a stopped one left


@pytest.fixture(scope="module")
def brokerctl(tmp_path_factory):
    """A data folder with its store running, a node on it, and brokerctl as a function of its words."""
    data = DataDirectory(tmp_path_factory.mktemp("data"))
    with EmbeddedStore(data.store) as own_store:
        data.remember("controlled")

        def run(*words):
            return json.loads(said("--json", *words))

        def said(*words):
            out = StringIO()
            call_command("brokerctl", "--data", str(data.path), *words, stdout=out)
            return out.getvalue()

        run.said = said

        run.node = RunningNode(default_config("controlled", 0), own_store.url)
        yield run
        if run.node is not None:
            run.node.stop()


XML = """\
<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
  <compositeQueue name="in"><forwardTo><queue physicalName="out"/></forwardTo></compositeQueue>
</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
"""


def test_brokerctl_works_on_one_queue(brokerctl, connect, name):
    client = connect(port=brokerctl.node.port)
    for number in range(4):
        client.send(f"/queue/{name}", str(number), parity="odd" if number % 2 else "even", JMSXGroupID="g")
    assert brokerctl("copy", name, f"{name}.copy", "--selector", "parity = 'odd'") == {"copied": 2}
    assert brokerctl("move", name, f"{name}.to", "--limit", "1") == {"moved": 1}
    assert brokerctl("resubmit", f"{name}.to") == {"retried": 1}
    change = ("--selector", "parity = 'odd'", "--set", "amount:number=5", "--remove", "JMSXGroupID")
    looked = brokerctl("edit", name, *change, "--dry-run")
    assert (looked["count"], looked["after"]["properties"]) == (2, {"parity": "odd", "amount": "5"})
    assert brokerctl("edit", name, *change, "--priority", "4") == {"edited": 2, "left": []}
    edited = brokerctl("browse", name, "--selector", "amount = 5")["messages"]
    assert [(each["body"], "JMSXGroupID" in each["headers"]) for each in edited] == [("1", False), ("3", False)]
    assert brokerctl("remove", name, "--selector", "parity = 'odd'") == {"removed": 2}
    brokerctl("pause", name)
    client.subscribe(f"/queue/{name}")
    assert client.has_no_more()
    brokerctl("resume", name)
    assert client.bodies(2) == ["2", "0"]
    assert [each["group"] for each in brokerctl("groups", name)] == ["g"]
    assert brokerctl("forget-groups", name) == {"forgotten": 1}
    assert brokerctl("selectors") == []
    assert brokerctl("forget-selectors", name) == {"forgotten": False}
    client.leave()
    wait_until(lambda: brokerctl.node.numbers(Destination.queue(name)).ConsumerCount == 0, "the client is gone")
    for each in (name, f"{name}.copy", f"{name}.to"):
        brokerctl("delete", each)


def test_brokerctl_looks_and_changes_while_the_node_runs(brokerctl, connect, tmp_path):
    client = connect(port=brokerctl.node.port)
    file = tmp_path / "activemq.xml"
    file.write_text(XML)
    assert "deleted because it is not in the file: virtual topic VirtualTopic.>" in brokerctl.said(
        "import", str(file), "--dry-run"
    )
    assert brokerctl("import", str(file))["version"] == 2
    brokerctl.node.wait_for_definitions(2)
    client.send("/queue/in", "by the new routing")
    client.send("/queue/other", "x")
    assert [each["body"] for each in brokerctl("browse", "/queue/out")["messages"]] == ["by the new routing"]
    wait_until(lambda: any(row["QueueSize"] for row in brokerctl("destinations", "--contains", "out")), "the numbers")
    brokerctl("network-put", '{"name": "far", "uri": "tcp://far:1", "options": {"userName": "u", "password": "p"}}')
    xml = brokerctl("export")["xml"]
    assert '<compositeQueue name="in"' in xml
    assert '<networkConnector name="far" uri="tcp://far:1" userName="u"/>' in xml
    brokerctl("network-remove", "far")
    assert brokerctl("purge", "/queue/other") == {"purged": 1}
    flow = "queues and subscriptions: 2 messages enqueued and 1 dequeued since the node started, depth 1"
    wait_until(lambda: flow in brokerctl.said("stats"), "it")
    assert ", 1 connection, store uses " in brokerctl.said("stats")
    with pytest.raises(CommandError, match="queue://nowhere not found"):
        brokerctl("purge", "/queue/nowhere")


def test_brokerctl_works_on_what_a_stopped_node_left(brokerctl, connect, name):
    kept, purged = f"/queue/{name}.kept", f"/queue/{name}.purged"
    client = connect(port=brokerctl.node.port)
    for each in (kept, purged):
        client.send(each, "x", persistent="true")
    assert brokerctl("purge", purged) == {"purged": 1}
    brokerctl.node.stop()
    brokerctl.node = None
    assert brokerctl("stats") == []
    depths = {row["destination"]: row["QueueSize"] for row in brokerctl("destinations", "--contains", name)}
    assert depths == {f"queue://{name}.kept": 1, f"queue://{name}.purged": 0}
    assert brokerctl("purge", kept) == {"purged": 1}
    assert brokerctl("delete", purged) == {"deleted": purged, "messages": 0}
    left = brokerctl("destinations", "--contains", name)
    assert [row["destination"] for row in left] == [f"queue://{name}.kept"]
    with pytest.raises(CommandError, match="broker 'controlled' has no running node"):
        brokerctl("create", "/queue/new")


def test_brokerctl_says_in_one_sentence_what_is_wrong_and_exits_with_1(tmp_path):
    command = [sys.executable, "manage.py", "brokerctl", "--data", tmp_path, "destinations"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: no broker is running with --data {tmp_path}, or it is still starting")
    assert len(done.stderr.splitlines()) == 1
