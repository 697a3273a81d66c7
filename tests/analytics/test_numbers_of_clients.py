"""Compare figures of analyses with a ledger that clients of a real node kept."""

import time
from types import SimpleNamespace

import pytest
from observed import Analyst, now_us, observed_node

from analytics.requests.request import TimeWindow
from brokerapp.model.destination import Destination
from brokerapp.store.server.embedded import EmbeddedStore
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

#: Messages of each part of the scenario: what clients did, and so what is true.
COMMITTED, ABORTED, BROKEN = 5, 3, 2
LATE_KEPT, LATE_DROPPED, LATE_TOPIC, REJECTED = 4, 3, 2, 2
TAKEN_AND_LEFT, GIVEN_AGAIN = 4, 3
AUTO = 20
MOVED, REMOVED, STAYING = 2, 1, 3
PUT_OFF = 2

POLICIES = """
<destinationPolicy><policyMap><policyEntries>
  <policyEntry topic="slow.>"><pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="1"/>
  </pendingMessageLimitStrategy></policyEntry>
</policyEntries></policyMap></destinationPolicy>
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
  <redeliveryPolicy queue="delayed.>" maximumRedeliveries="3" initialRedeliveryDelay="600000"
    redeliveryDelay="600000"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory, spark):
    """The node ran, the clients did all of it: when that was, what they noted, and who answers questions about it."""
    folder = tmp_path_factory.mktemp("observed")
    noted = SimpleNamespace()
    began = now_us()
    with EmbeddedStore(folder / "store") as store, observed_node(store, folder / "archive", POLICIES) as node:
        _transactions(node)
        _late(node)
        _rejected(node)
        _left_behind(node)
        noted.auto_us = _auto(node)
        _operators(node)
        _left_with_messages_coming(node)
        time.sleep(0.01)
    noted.analyst = Analyst(spark, folder / "archive", TimeWindow(began, now_us() + 1))
    return noted


def _client(node, **connect) -> StompClient:
    return StompClient(node.port, "1.2", **connect)


def _leave(*clients: StompClient) -> None:
    for each in clients:
        each.connection.disconnect()
        assert each.disconnected.wait(20)


def _transactions(node) -> None:
    client, broken = _client(node), _client(node)
    for name, count, end in (("t1", COMMITTED, "COMMIT"), ("t2", ABORTED, "ABORT")):
        client.frame("BEGIN", transaction=name)
        for _ in range(count):
            client.send("/queue/tx", "x", persistent="true", transaction=name)
        client.frame(end, transaction=name)
    broken.frame("BEGIN", transaction="t")
    for _ in range(BROKEN):
        broken.send("/queue/tx", "x", transaction="t")
    _leave(client, broken)


def _late(node) -> None:
    sender, consumer = _client(node), _client(node)
    soon = str(int(time.time() * 1000) + 300)
    for _ in range(LATE_KEPT):
        sender.send("/queue/late", "x", persistent="true", expires=soon)
    for _ in range(LATE_DROPPED):
        sender.send("/queue/late", "x", expires=soon)
    consumer.subscribe("/topic/late", id="t", ack="client-individual", prefetch=1)
    sender.send("/topic/late", "held")
    [held] = consumer.take()
    for _ in range(LATE_TOPIC):
        sender.send("/topic/late", "x", expires=str(int(time.time() * 1000) + 300))
    time.sleep(0.5)
    consumer.ack(held)
    consumer.subscribe("/queue/late", id="q")
    wait_until(lambda: node.depth("late") == 0, "late messages are gone")
    assert consumer.has_no_more()
    _leave(sender, consumer)


def _rejected(node) -> None:
    client = _client(node)
    client.subscribe("/queue/bad", id="b", ack="client-individual")
    client.subscribe("/queue/delayed.bad", id="d", ack="client-individual")
    for name, count in (("bad", REJECTED), ("delayed.bad", PUT_OFF)):
        for _ in range(count):
            client.send(f"/queue/{name}", "x", persistent="true")
        for each in client.take(count):
            client.nack(each)
    _leave(client)


def _left_behind(node) -> None:
    sender, first, second = _client(node), _client(node), _client(node)
    for queue in ("back", "again"):
        for _ in range(TAKEN_AND_LEFT):
            sender.send(f"/queue/{queue}", "x", persistent="true")
        first.subscribe(f"/queue/{queue}", id=queue, ack="client-individual")
        first.take(TAKEN_AND_LEFT)
    _leave(first)
    second.subscribe("/queue/again", ack="client-individual", prefetch=GIVEN_AGAIN)
    second.take(GIVEN_AGAIN)
    _leave(sender, second)


def _auto(node) -> tuple[int, int]:
    """How long they took for clients: from before the SEND until the MESSAGE was read, the least and the most."""
    sender, consumer = _client(node), _client(node)
    consumer.subscribe("/queue/auto", ack="auto")
    took = []
    for _ in range(AUTO):
        began = now_us()
        sender.send("/queue/auto", "x", wait=False)
        consumer.take()
        took.append(now_us() - began)
    _leave(sender, consumer)
    return min(took), max(took)


def _operators(node) -> None:
    sender = _client(node)
    for number in range(MOVED + REMOVED + STAYING):
        sender.send("/queue/moved", "x", persistent="true", n=str(number))
    node.ask(lambda admin: admin.move(Destination.queue("moved"), Destination.queue("target"), limit=MOVED))
    node.ask(lambda admin: admin.remove(Destination.queue("moved"), limit=REMOVED))
    _leave(sender)


def _left_with_messages_coming(node) -> None:
    sender, consumer = _client(node), _client(node, **{"client-id": "who-left"})
    consumer.subscribe("/queue/abandoned", ack="client-individual")
    for _ in range(5):
        sender.send("/queue/abandoned", "x", persistent="true")
        for each in consumer.take():
            consumer.ack(each)
    _leave(consumer)
    for _ in range(20):
        sender.send("/queue/abandoned", "x", persistent="true")
    _leave(sender)


# -- what is true of it


def _depths(seen) -> dict[str, int]:
    from analytics.transforms.depth_changes import flows

    first = seen.analyst.window.since_us // 1_000_000
    found = flows(seen.analyst.events(), 86_400, first, []).toArrow().to_pylist()
    queues = [row for row in found if row["destination"].startswith("queue://")]
    return {row["destination"].removeprefix("queue://"): row["came"] - row["went"] for row in queues}


def test_what_came_less_what_went_is_what_clients_left_in_each_queue(seen):
    depths = _depths(seen)
    assert {name: depths[name] for name in ("tx", "late", "bad", "back", "again", "auto")} == {
        "tx": COMMITTED, "late": 0, "bad": 0, "back": TAKEN_AND_LEFT, "again": TAKEN_AND_LEFT, "auto": 0,
    }  # fmt: skip
    assert depths["abandoned"] == 20


def test_what_operators_moved_and_what_is_put_off_is_gone_from_its_queue(seen):
    depths = _depths(seen)
    assert (depths["moved"], depths["target"]) == (STAYING, MOVED)
    assert depths["delayed.bad"] == 0


def test_what_was_given_up_counts_once_by_what_became_of_it_and_says_why(seen):
    from analytics.jobs import dead_letters as job

    found, tables = seen.analyst.ask(job)
    late = LATE_KEPT + LATE_DROPPED + LATE_TOPIC
    figures = [REJECTED, late, 0]
    assert [figure.value for figure in found.headline] == figures
    rows = {(row["destination"], row["outcome"], row["cause"]): row["messages"] for row in tables["causes"]}
    assert rows["queue://late", "expired", "expired"] == LATE_KEPT + LATE_DROPPED
    assert rows["topic://late", "expired", "expired"] == LATE_TOPIC
    assert sum(rows.values()) == sum(figures)
    assert f"{late} messages expired or were dropped" in found.sentence
    assert f"{late / sum(figures) * 100:.0f}% of all {sum(figures)} expired, {LATE_KEPT} of them" in found.sentence


def test_what_was_rolled_back_was_not_sent_and_is_told(seen):
    from analytics.jobs import client_ranking, traffic

    found, tables = seen.analyst.ask(traffic, destination="queue://tx")
    assert [row["sent"] for row in tables["traffic"]] == [COMMITTED]
    assert found.notes[0].startswith(f"{ABORTED + BROKEN} messages in rolled-back transactions")
    found, tables = seen.analyst.ask(client_ranking, destination="queue://tx")
    assert sum(row["messages"] for row in tables["producers"]) == COMMITTED
    assert found.notes[0].startswith(f"{ABORTED + BROKEN} messages")


def test_a_what_if_counts_what_was_committed_and_says_how_much_was_not(seen):
    from analytics.transforms.whatif import flows

    [row] = [row for row in flows(seen.analyst.events(), 86_400).collect() if row["destination"] == "queue://tx"]
    assert (row["sent"], row["rolled_back"], row["stored"]) == (COMMITTED, ABORTED + BROKEN, COMMITTED)


def test_messages_that_only_went_back_were_not_given_out_again(seen):
    from analytics.jobs import redeliveries as job

    _, tables = seen.analyst.ask(job)
    again = {row["destination"]: row["redelivered"] for row in tables["repeats"]}
    assert (again["queue://back"], again["queue://again"]) == (0, GIVEN_AGAIN)
    assert again["queue://delayed.bad"] == 0
    assert sum(again.values()) == GIVEN_AGAIN
    assert sum(row["duplicated"] for row in tables["repeats"]) == 0


def test_acknowledgements_by_the_broker_took_as_long_as_messages_needed_to_their_consumers_connection(seen):
    from analytics.jobs import latency as job

    _, tables = seen.analyst.ask(job, destination="queue://auto")
    [row] = tables["latency"]
    least_ms, most_ms = (each / 1000 for each in seen.auto_us)
    assert row["acked"] == AUTO
    assert 0.005 < row["p50_ms"] <= row["p99_ms"] < most_ms  # nothing is parsed, routed and written in 5 microseconds
    assert row["p50_ms"] != row["p99_ms"] or least_ms == most_ms


def test_consumers_that_left_are_not_judged_and_their_queue_has_no_forecast(seen):
    from analytics.jobs import consumer_health, depth

    found, tables = seen.analyst.ask(consumer_health, destination="queue://abandoned")
    [row] = tables["consumers"]
    assert (row["client"], row["state"], row["left"] is None) == ("who-left", "healthy", False)
    assert "lagging" not in found.sentence
    assert "left its queue" in found.sentence
    _, tables = seen.analyst.ask(depth, destination="queue://abandoned")
    [row] = tables["depths"]
    assert (row["depth"], row["consumers"], row["drained_seconds"]) == (20, 0, None)
