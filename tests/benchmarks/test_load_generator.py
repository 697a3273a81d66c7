import pytest
from tiny_broker import TinyBroker

from benchmarks.generator import load
from benchmarks.generator.connection import RunFailed
from benchmarks.generator.load import run
from benchmarks.generator.stomp_py import run_stomp_py
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.routes import Queue, RejectedQueue
from benchmarks.scenarios.rows import Scenario

QUEUE = Scenario("queue", "", Queue(), {}, window=100)
MESSAGES = 200


@pytest.fixture
def broker(request):
    tiny = TinyBroker(**getattr(request, "param", {}))
    yield tiny
    tiny.close()


def with_fault(fault):
    return pytest.mark.parametrize("broker", [{"fault": fault}], indirect=True)


def test_every_message_is_sent_delivered_and_acknowledged_once(broker):
    outcome = run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)
    assert outcome.deliveries == broker.received == MESSAGES
    assert len(broker.acks) == MESSAGES


@pytest.mark.parametrize("broker", [{"pieces": 700}], indirect=True)
def test_frames_cut_anywhere_are_counted_whole(broker):
    assert run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES
    assert len(broker.acks) == MESSAGES


def test_several_producers_and_consumers_share_the_work(broker):
    scenario = Scenario("queue", "", Queue(consumers=3), {}, producers=2, window=50)
    assert run(Traffic(scenario), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES
    assert len(broker.acks) == MESSAGES


def test_without_receipts_the_window_moves_with_the_deliveries(broker):
    scenario = Scenario("queue", "", Queue(), {}, window=50, persistent=False)
    assert run(Traffic(scenario), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES
    assert not broker.acks


def test_the_receipt_of_a_transaction_confirms_all_its_messages(broker):
    scenario = Scenario("transactions", "", Queue(), {}, window=100, transaction=10)
    assert run(Traffic(scenario), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES
    assert broker.received == len(broker.acks) == MESSAGES


def test_every_tenth_message_is_rejected_twice_and_then_acknowledged(broker):
    scenario = Scenario("reject", "", RejectedQueue(), {}, window=100, is_ordered=False)
    assert run(Traffic(scenario), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES
    assert len(broker.nacks) == 2 * len(set(broker.nacks)) == 2 * MESSAGES // 10
    assert len(broker.acks) == MESSAGES


def test_producers_that_wait_for_each_receipt_send_one_message_at_a_time(broker):
    scenario = Scenario("services", "", Queue(consumers=2), {}, producers=5, window=1, block=1, rests=False)
    assert run(Traffic(scenario), broker.address, ActiveMQDialect(), MESSAGES).deliveries == MESSAGES


def test_stomp_py_sends_and_consumes_the_same_messages(broker):
    outcome = run_stomp_py(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)
    assert outcome.deliveries == len(broker.acks) == MESSAGES
    assert outcome.cpu_seconds > 0


@with_fault("double")
def test_a_delivery_too_many_fails_the_run(broker):
    with pytest.raises(RunFailed, match="queue 0: 1 received twice, the first is 10000059"):
        run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)


@with_fault("lose")
def test_a_missing_delivery_fails_the_run(broker, monkeypatch):
    monkeypatch.setattr(load, "STALL_SECONDS", 0.2)
    with pytest.raises(RunFailed, match="queue 0: 1 missing, the first is 10000059"):
        run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)


@with_fault("silence")
def test_a_missing_receipt_fails_the_run(broker, monkeypatch):
    monkeypatch.setattr(load, "STALL_SECONDS", 0.2)
    with pytest.raises(RunFailed, match="producer 0 has 199 receipts for 200 messages"):
        run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)


@with_fault("refuse")
def test_an_error_frame_fails_the_run_with_what_it_says(broker):
    with pytest.raises(RunFailed, match="no room"):
        run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)


def test_a_broker_that_closes_the_connection_fails_the_run(broker, monkeypatch):
    monkeypatch.setattr(TinyBroker, "_handle", lambda self, client, *_: client.close())
    with pytest.raises(RunFailed, match="expected CONNECTED"):
        run(Traffic(QUEUE), broker.address, ActiveMQDialect(), MESSAGES)
