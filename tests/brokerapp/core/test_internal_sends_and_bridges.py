"""Test that messages of the broker itself are not stored for a bridge to where they came from."""

from types import SimpleNamespace

import pytest

from brokerapp.admin.handlers.message_transfer import MessageTransfer
from brokerapp.core.publishing.message_router import MessageRouter
from brokerapp.core.redelivery.dead_lettering import DeadLettering
from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.engine.policy.subscription_recovery import RETAIN
from brokerapp.engine.routing.routing_table import RoutingTable
from brokerapp.engine.routing.subscription_feeds import SubscriptionFeed
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.model.subscription_identity import SubscriptionIdentity
from tests.broker_parts import part_of

TOPIC = Destination.topic("t")
LEADS_TO_A = SubscriptionIdentity("bridge", "NC-DS_t", (TOPIC,), leads_to="a")
FEED = SubscriptionFeed(LEADS_TO_A, LEADS_TO_A.log(1), lambda *_: True)


class FakeBroker(SimpleNamespace):
    """As much of a broker as a message asks on its way; `kept` is where those went that were published."""

    def __init__(self) -> None:
        topology = RoutingTable(Definitions(1, ()), lambda *_: True)
        topology.add_feed(FEED)
        super().__init__(
            name="b", session="s", routing=SimpleNamespace(table=topology), kept=[],
            queues=SimpleNamespace(ensure_target=lambda _destination: None),
            durables=SimpleNamespace(logs_kept_for_bridges=lambda path: {FEED.target} if "a" in path else set()),
            commits=SimpleNamespace(submit=lambda unit: unit.callback(1, "")),
            arrivals=SimpleNamespace(on_committed=lambda placed, *_, **__: self.kept.extend(placed[0].route.queues)),
            timers=SimpleNamespace(call_every=lambda *_: None),
        )  # fmt: skip
        self.router = part_of(MessageRouter, **vars(self))


def moved(broker: FakeBroker, message: Message) -> None:
    broker.kept += part_of(MessageTransfer, **vars(broker)).route(message, TOPIC).route.queues


def buried(broker: FakeBroker, message: Message) -> None:
    part_of(DeadLettering, **vars(broker))._move_to_dlq(message, TOPIC, ())


def remembered(broker: FakeBroker, message: Message) -> None:
    recovery = part_of(RetroactiveRecovery, **vars(broker))
    recovery.published([message], RoutedCopy(TOPIC))
    recovery.created(SimpleNamespace(feed=FEED, identity=LEADS_TO_A))


@pytest.mark.parametrize("goes", [moved, buried, remembered])
@pytest.mark.parametrize(("path", "is_kept"), [((), True), (("z",), True), (("z", "a"), False)])
def test_what_is_moved_fails_or_is_remembered_is_not_kept_for_the_bridge_to_where_it_came_from(goes, path, is_kept):
    broker = FakeBroker()
    goes(broker, Message("1", f"message-id:1\n{RETAIN}:true\n".encode(), b"x", path=path))
    assert [each.destination for each in broker.kept] == [FEED.target] * is_kept
