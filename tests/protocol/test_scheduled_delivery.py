"""Test delayed, repeated and scheduled delivery, and its management by messages and operators."""

import time
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.scheduling.scheduled_job import JobPurpose, ScheduledJob
from brokerapp.errors import RequestRefused
from brokerapp.store.redis import RedisStore
from brokerapp.tracing.schema import DROP
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

MANAGEMENT = "/topic/ActiveMQ.Scheduler.Management"
LATER = "600000"


def now_ms():
    return int(time.time() * 1000)


def waiting(node, destination):
    """Messages that wait for a destination."""
    _, found = node.ask(lambda admin: admin.scheduled(limit=1000))
    return [each for each in found if each.to == destination]


def soon(node, name):
    """A cron's minute comes at once: jobs for a destination are due now."""

    async def hasten():
        store = RedisStore(node.redis_url, node.name)
        for each in await store.schedules.read_jobs(0, 10**15, 0, 1000):
            if ScheduledJob.load(each.record).to == f"/queue/{name}":
                await store.client.execute("ZADD", store.keys.due, now_ms(), each.id)
        await store.close()

    node.do(hasten)
    node.look(node.node.broker.scheduled_jobs.start)


@pytest.mark.scenario("ST-06", "SH-01")
def test_a_delayed_message_comes_when_its_delay_is_over(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    begin = now_ms()
    client.send(f"/queue/{name}", "later", AMQ_SCHEDULED_DELAY="400", colour="red", persistent="true")
    assert client.has_no_more()
    assert node.depth(name) == 0
    [message] = client.take()
    assert now_ms() - begin >= 400
    assert (message.body, message.headers["colour"], message.headers["persistent"]) == ("later", "red", "true")
    assert message.headers["scheduledJobId"] == message.headers["message-id"]
    assert not [each for each in message.headers if each.startswith("AMQ_")]
    assert waiting(node, f"/queue/{name}") == []


@pytest.mark.scenario("SH-01")
def test_a_message_is_repeated_each_time_with_an_id_of_its_own(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(
        f"/queue/{name}", "again", AMQ_SCHEDULED_DELAY="50", AMQ_SCHEDULED_PERIOD="60", AMQ_SCHEDULED_REPEAT="9"
    )
    messages = client.take(10)
    wait_until(lambda: waiting(node, f"/queue/{name}") == [], "the row is over")
    assert client.has_no_more()
    assert len({message.headers["message-id"] for message in messages}) == 10
    assert len({message.headers["scheduledJobId"] for message in messages}) == 1


def test_a_topic_gets_scheduled_messages_too(connect, name):
    client = connect()
    client.subscribe(f"/topic/{name}")
    client.send(f"/topic/{name}", "later", AMQ_SCHEDULED_DELAY="100")
    assert client.bodies() == ["later"]


def test_a_virtual_topic_is_copied_when_the_message_is_due(connect, node, name):
    client = connect()
    client.send(f"/topic/VirtualTopic.{name}", "later", AMQ_SCHEDULED_DELAY="300")
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}")  # not there yet when it was sent
    assert client.bodies() == ["later"]


def test_time_to_live_counts_from_delivery(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    sent = now_ms()
    client.send(f"/queue/{name}", "later", AMQ_SCHEDULED_DELAY="400", expires=str(sent + 200))
    [message] = client.take()
    assert int(message.headers["expires"]) >= sent + 600
    assert int(message.headers["timestamp"]) >= sent + 400


@pytest.mark.scenario("SH-01")
def test_a_cron_sends_at_its_minutes_and_goes_on(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", "tick", AMQ_SCHEDULED_CRON="0 0 1 1 *")
    for _ in range(2):
        [job] = waiting(node, f"/queue/{name}")
        assert job.due_ms > now_ms()
        assert job.headers["AMQ_SCHEDULED_CRON"] == "0 0 1 1 *"
        soon(node, name)
        [message] = client.take()
        assert (message.body, message.headers["scheduledJobId"]) == ("tick", job.job)
    assert len(waiting(node, f"/queue/{name}")) == 1


@pytest.mark.scenario("SH-01")
def test_a_cron_begins_a_row_at_its_minutes(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(
        f"/queue/{name}", "tick", AMQ_SCHEDULED_CRON="0 0 1 1 *", AMQ_SCHEDULED_DELAY="50", AMQ_SCHEDULED_PERIOD="50",
        AMQ_SCHEDULED_REPEAT="2",
    )  # fmt: skip
    soon(node, name)
    messages = client.take(3)
    assert len({message.headers["message-id"] for message in messages}) == 3
    wait_until(lambda: len(waiting(node, f"/queue/{name}")) == 1, "only the cron is left")
    assert client.has_no_more()


@pytest.mark.scenario("SH-01")
def test_in_a_transaction_a_message_is_scheduled_at_commit(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}")
    for end in ("ABORT", "COMMIT"):
        client.frame("BEGIN", transaction="t")
        client.send(f"/queue/{name}", end, AMQ_SCHEDULED_DELAY="200", transaction="t")
        client.send(f"/queue/{name}", f"{end} now", transaction="t")
        assert waiting(node, f"/queue/{name}") == []
        client.frame(end, transaction="t")
    assert client.bodies(2) == ["COMMIT now", "COMMIT"]
    assert client.has_no_more()


@pytest.mark.parametrize("end", ["ABORT", "COMMIT"])
def test_what_a_transaction_held_for_later_counts_no_more_when_it_is_over(connect, node, name, end):
    quotas = node.node.broker.quotas
    before = node.look(lambda: quotas.transaction_bytes)
    client = connect()
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "x" * 5_000, AMQ_SCHEDULED_DELAY=LATER, transaction="t")
    assert 5_000 <= node.look(lambda: quotas.transaction_bytes) - before < 6_000
    client.frame(end, transaction="t")
    assert node.look(lambda: quotas.transaction_bytes) == before


def test_a_refused_schedule_without_a_receipt_spoils_its_transaction(connect, node, name):
    client = connect()
    client.frame("BEGIN", transaction="t")
    client.send(f"/queue/{name}", "good", transaction="t")
    client.send(f"/queue/{name}", "bad", wait=False, AMQ_SCHEDULED_DELAY="soon", transaction="t")
    assert "AMQ_SCHEDULED_DELAY:soon" in client.error().headers["message"]
    client.connection.send_frame("COMMIT", {"transaction": "t"})
    assert "the transaction was rolled back" in client.error().headers["message"]
    client.round_trip()
    assert node.depth(name) == 0


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"AMQ_SCHEDULED_DELAY": "soon"}, "AMQ_SCHEDULED_DELAY:soon is not a whole number"),
        ({"AMQ_SCHEDULED_CRON": "* * *"}, "is not five fields"),
        ({"AMQ_SCHEDULED_CRON": "0 0 30 2 *"}, "never matches"),
        ({"AMQ_SCHEDULED_DELAY": "1", "AMQ_SCHEDULED_REPEAT": "-1"}, "needs AMQ_SCHEDULED_PERIOD"),
        ({"AMQ_SCHEDULED_DELAY": "1", "AMQ_SCHEDULED_REPEAT": "1001"}, "above 1000"),
    ],
)
def test_a_wrong_schedule_is_an_error_and_nothing_is_sent(connect, node, name, headers, said):
    client = connect()
    client.connection.send(f"/queue/{name}", "x", headers={**headers, "receipt": "r"})
    error = client.error()
    assert said in error.headers["message"]
    assert error.headers["receipt-id"] == "r"
    client.round_trip()  # the connection goes on
    assert waiting(node, f"/queue/{name}") == []


def test_without_room_in_the_store_it_is_refused_at_once(connect, node, name, monkeypatch):
    broker, client = node.node.broker, connect()
    monkeypatch.setattr(broker.commits.first.limits, "total", 1)
    client.connection.send(f"/queue/{name}", "x", headers={"AMQ_SCHEDULED_DELAY": LATER, "receipt": "r"})
    error = client.error()
    assert (error.headers["code"], error.headers["receipt-id"]) == ("limit-exceeded", "r")
    assert "the broker's store is full" in error.headers["message"]
    assert node.look(lambda: [each.pending_writes for each in broker.clients.values()]) == [0]
    monkeypatch.undo()
    client.send(f"/queue/{name}", "x", AMQ_SCHEDULED_DELAY=LATER)
    assert len(waiting(node, f"/queue/{name}")) == 1


def test_without_room_in_the_store_what_was_acked_with_it_stays_with_its_consumer_and_is_not_lost(
    connect, node, name, monkeypatch
):
    client = connect()
    client.send(f"/queue/{name}", "acked", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.frame("BEGIN", transaction="t")
    client.ack(client.take()[0], transaction="t")
    client.send(f"/queue/{name}.later", "x" * 5_000, AMQ_SCHEDULED_DELAY=LATER, transaction="t")
    monkeypatch.setattr(node.node.broker.commits.first.limits, "total", 1)
    client.frame("COMMIT", wait=False, transaction="t")
    assert client.error().headers["code"] == "limit-exceeded"
    assert client.has_no_more()
    assert waiting(node, f"/queue/{name}.later") == []
    client.leave()
    other = connect()
    other.subscribe(f"/queue/{name}")
    [message] = other.take()
    assert (message.body, message.headers["redelivered"]) == ("acked", "true")


@pytest.mark.parametrize("also", [False, True])
def test_what_was_for_a_temporary_destination_that_is_gone_waits_no_more(connect, node, name, also, monkeypatch):
    events = []
    monkeypatch.setattr(node.node.broker.tracer, "record_one", lambda *event: events.append(event))
    owner, client = connect(), connect()
    owner.subscribe(f"/temp-queue/{name}")
    owner.send(f"/queue/{name}", "ask", reply_to=f"/temp-queue/{name}")
    client.subscribe(f"/queue/{name}")
    to = client.take()[0].headers["reply-to"] + (f",/queue/{name}" if also else "")
    client.send(to, "later", AMQ_SCHEDULED_DELAY="300", AMQ_SCHEDULED_PERIOD="100", AMQ_SCHEDULED_REPEAT="2")
    owner.leave()
    if also:
        assert client.bodies(3) == ["later"] * 3
    wait_until(lambda: waiting(node, to) == [], "it is over")
    dropped = [(each[4], each[6]) for each in events if each[0] == DROP]
    assert dropped == ([] if also else [(to, "the temporary destination is gone")])


def test_nothing_is_kept_for_a_temporary_destination_that_never_was(connect, node):
    client = connect()
    for kind in ("queue", "topic"):
        to = f"/remote-temp-{kind}/ID:nobody:1"
        client.send(to, "x", wait=False, AMQ_SCHEDULED_DELAY=LATER)
        assert "does not exist" in client.error().headers["message"]
        assert waiting(node, to) == []


def test_a_fault_with_one_job_ends_neither_the_node_nor_other_jobs(connect, node, name, monkeypatch, caplog):
    client, does = connect(), node.node.broker.scheduled_jobs.does

    def deliver(id, due_ms, job, well=does[JobPurpose.SEND]):
        if job.to.endswith(".bad"):
            raise ZeroDivisionError
        well(id, due_ms, job)

    monkeypatch.setitem(does, JobPurpose.SEND, deliver)
    client.subscribe(f"/queue/{name}")
    for to in (f"{name}.bad", name):
        client.send(f"/queue/{to}", "later", AMQ_SCHEDULED_DELAY="100")
    assert client.bodies() == ["later"]
    [job] = waiting(node, f"/queue/{name}.bad")
    assert 50_000 < job.due_ms - now_ms() <= 60_000
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    client.subscribe(f"/queue/{name}.bad", id="bad")
    soon(node, f"{name}.bad")
    assert client.bodies() == ["later"]


def test_without_scheduler_support_the_headers_are_properties(connect, node, name, monkeypatch):
    broker = node.node.broker
    monkeypatch.setattr(broker.scheduler, "_settings", replace(broker.settings, scheduler_support=False))
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", "now", AMQ_SCHEDULED_DELAY=LATER)
    [message] = client.take()
    assert message.headers["AMQ_SCHEDULED_DELAY"] == LATER


# -- management


def schedule(client, name, *bodies, delay=LATER):
    for body in bodies:
        client.send(f"/queue/{name}", body, AMQ_SCHEDULED_DELAY=delay, persistent="true")


def manage(client, action, **headers):
    client.send(MANAGEMENT, "", AMQ_SCHEDULER_ACTION=action, **headers)


@pytest.fixture
def empty(connect):
    """Nothing waits when a test begins."""
    manage(connect(), "REMOVEALL")


@pytest.mark.scenario("SH-02")
def test_what_waits_can_be_browsed(connect, node, name, empty):
    client = connect()
    schedule(client, name, "a", "b")
    client.subscribe(f"/queue/{name}.answers")
    manage(client, "BROWSE", reply_to=f"/queue/{name}.answers")
    messages = client.take(2)
    assert sorted(message.body for message in messages) == ["a", "b"]
    assert {message.headers["AMQ_SCHEDULED_DELAY"] for message in messages} == {LATER}
    assert {message.headers["original-destination"] for message in messages} == {f"/queue/{name}"}
    ids = {each.job for each in waiting(node, f"/queue/{name}")}
    assert {message.headers["scheduledJobId"] for message in messages} == ids
    assert len(ids) == 2


@pytest.mark.scenario("SH-02")
def test_what_waits_can_be_browsed_with_a_selector(connect, name, empty):
    client = connect()
    schedule(client, name, "a")
    schedule(client, name, "b", delay="500000")
    client.subscribe(f"/queue/{name}.answers", selector="AMQ_SCHEDULED_DELAY = 500000")
    manage(client, "BROWSE", reply_to=f"/queue/{name}.answers")
    assert client.bodies() == ["b"]
    assert client.has_no_more()


@pytest.mark.scenario("SH-02")
def test_a_window_of_what_waits_can_be_browsed_and_removed(connect, node, name, empty):
    client = connect()
    schedule(client, name, "soon", delay="300000")
    schedule(client, name, "later")
    client.subscribe(f"/queue/{name}.answers")
    window = {"ACTION_START_TIME": str(now_ms()), "ACTION_END_TIME": str(now_ms() + 400_000)}
    manage(client, "BROWSE", reply_to=f"/queue/{name}.answers", **window)
    assert client.bodies() == ["soon"]
    manage(client, "REMOVEALL", **window)
    assert [each.headers["AMQ_SCHEDULED_DELAY"] for each in waiting(node, f"/queue/{name}")] == [LATER]
    manage(client, "REMOVEALL")
    assert waiting(node, f"/queue/{name}") == []
    assert client.has_no_more()


@pytest.mark.scenario("SH-02")
def test_one_that_waits_can_be_removed_and_an_unknown_one_is_no_error(connect, node, name, empty):
    client = connect()
    schedule(client, name, "a", "b")
    [first, second] = waiting(node, f"/queue/{name}")
    manage(client, "REMOVE", scheduledJobId=first.job)
    assert waiting(node, f"/queue/{name}") == [second]
    manage(client, "REMOVE", scheduledJobId="ID:nobody")
    assert client.errors.empty()
    manage(client, "REMOVEALL")


def test_removing_many_takes_them_all(connect, node, name, empty):
    client = connect()
    for number in range(1200):  # more than two pages
        client.send(f"/queue/{name}", str(number), wait=False, AMQ_SCHEDULED_DELAY=LATER)
    client.round_trip()
    manage(client, "REMOVEALL")
    assert node.ask(lambda admin: admin.scheduled()) == (0, [])


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"AMQ_SCHEDULER_ACTION": "DANCE"}, "AMQ_SCHEDULER_ACTION:DANCE is not one of BROWSE, REMOVE, REMOVEALL"),
        ({"AMQ_SCHEDULER_ACTION": "BROWSE"}, "without reply-to"),
        ({"AMQ_SCHEDULER_ACTION": "REMOVE"}, "without scheduledJobId"),
        ({"AMQ_SCHEDULER_ACTION": "REMOVEALL", "ACTION_START_TIME": "noon"}, "ACTION_START_TIME:noon is not a moment"),
    ],
)
def test_management_that_makes_no_sense_is_an_error(connect, headers, said):
    client = connect()
    client.connection.send(MANAGEMENT, "", headers=headers)
    assert said in client.error().headers["message"]


def test_operators_remove_what_waits(connect, node, name):
    schedule(connect(), name, "a")
    [job] = waiting(node, f"/queue/{name}")
    node.ask(lambda admin: admin.cancel_scheduled(job.job))
    assert waiting(node, f"/queue/{name}") == []
    with pytest.raises(RequestRefused, match=r"scheduled message .* not found"):
        node.ask(lambda admin: admin.cancel_scheduled(job.job))


def test_an_operators_schedule_holds_where_the_broker_ignores_those_of_clients(store, connect, name):
    running = RunningNode(replace(default_config("unscheduled", 0), scheduler_support=False), store.url)
    try:
        client = connect(port=running.port)
        client.send(f"/queue/{name}", "now", AMQ_SCHEDULED_DELAY=LATER)
        message = OperatorMessage(f"/queue/{name}", {"AMQ_SCHEDULED_DELAY": LATER}, b"later").to_json()
        running.ask(lambda admin: admin.send(message))
        assert running.bodies(name) == ["now"]
        assert [each.to for each in waiting(running, f"/queue/{name}")] == [f"/queue/{name}"]
        client.leave()
    finally:
        running.stop()
