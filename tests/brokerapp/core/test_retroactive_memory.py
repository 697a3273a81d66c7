"""Test the memory limit of messages retained for retroactive consumers."""

from types import SimpleNamespace

from brokerapp.core.subscriptions import retroactive
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.model.definitions import RecoveryPolicy
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.system import clock
from tests.broker_parts import part_of


def test_what_was_too_old_for_a_subscriber_takes_no_room_any_more(monkeypatch):
    now = 1_000
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    monkeypatch.setattr(retroactive, "MAX_BYTES", 2_000)
    policy = SimpleNamespace(recovery=RecoveryPolicy("timed", recover_duration=10))
    topology = SimpleNamespace(remembers=True, policy_for=lambda _topic: policy)
    timers, routing = SimpleNamespace(call_every=lambda *_: None), SimpleNamespace(table=topology)
    found = part_of(RetroactiveRecovery, timers=timers, routing=routing)
    for number in range(10):
        found.published([Message(str(number), b"message-id:x\n", b"body")], RoutedCopy(Destination.topic("t")))
        assert [kept.message.id for _, kept, _ in found.all()] == [str(number)]
        now += 10
        assert not list(found.all())
