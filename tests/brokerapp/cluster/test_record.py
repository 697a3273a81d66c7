"""Test the record of a cluster, and what a broker that was away learns from it."""

import pytest

from brokerapp.cluster.record import CatchUp, ClusterChange, ClusterRecord, RecordedItem, catch_up
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity

NEWS = Destination.topic("news")


def queue(name, exists=True):
    return ClusterChange.of_destination(Destination.queue(name), exists)


def durable(selector=None, exists=True):
    return ClusterChange.of_subscription(SubscriptionIdentity("me:x", "all %", (NEWS,), selector), exists)


def record(id="r", version=0, /, **versions):
    return ClusterRecord(id, version, {f"queue://{name}": RecordedItem(number) for name, number in versions.items()})


def test_each_change_is_one_version():
    first = record().with_change(queue("a"))
    assert (first.version, first.entries) == (1, {"queue://a": RecordedItem(1)})
    assert first.with_change(queue("a", False)) == record("r", 2)


@pytest.mark.parametrize(
    ("change", "why"),
    [(queue("a"), "queue://a exists already"), (queue("b", False), "queue://b is not in the cluster's record")],
)
def test_what_changes_nothing_is_refused(change, why):
    with pytest.raises(RequestRefused, match=why):
        record("r", 1, a=1).with_change(change)


def test_a_durable_subscription_that_keeps_something_else_takes_the_place_of_the_one_before():
    changed = ClusterRecord("r").with_change(durable()).with_change(durable("a = 1"))
    [entry] = changed.entries.values()
    assert (changed.version, entry.version, entry.attributes["selector"]) == (2, 2, "a = 1")


@pytest.mark.parametrize("change", [queue("a"), durable("a > 1"), durable(exists=False)])
def test_a_change_is_read_back_as_it_was_written(change):
    again = ClusterChange.from_json(change.to_json())
    assert again == change
    assert again.subscription == change.subscription


@pytest.mark.parametrize(
    ("mine", "masters", "held", "configured", "plan"),
    [
        pytest.param(record(), record(), (), (), CatchUp((), ()), id="nothing happened"),
        pytest.param(
            record("r", 1, a=1), record("r", 2, a=1, b=2), "a", "", CatchUp((queue("b"),), ()), id="one was made"
        ),
        pytest.param(
            record("r", 1, a=1), record("r", 2), "a", "", CatchUp((queue("a", False),), ()), id="one was deleted"
        ),
        pytest.param(
            record("r", 1, a=1), record("r", 3, a=3), "a", "", CatchUp((queue("a", False), queue("a")), ()),
            id="one was deleted and made again",
        ),
        pytest.param(
            record("r", 2, a=1), record("r", 2, a=1, b=2), "ab", "", CatchUp((), ()),
            id="it ended before it wrote down what it had done",
        ),
        pytest.param(
            ClusterRecord(), record("r", 1, b=1), "a", "", CatchUp((queue("b"),), (queue("a"),)),
            id="it is new, and joins with what it has",
        ),
        pytest.param(
            record("old", 5, a=1), record("r", 0), "a", "", CatchUp((), (queue("a"),)),
            id="the master began anew: nothing is deleted",
        ),
        pytest.param(
            record("r", 1, a=1), record("r", 2), "a", "a", CatchUp((), (queue("a"),)),
            id="its configuration names what was deleted",
        ),
        pytest.param(
            record("r", 1), record("r", 1), "", "a", CatchUp((), (queue("a"),)), id="its configuration names one more"
        ),
    ],
)  # fmt: skip
def test_what_a_broker_does_that_was_away(mine, masters, held, configured, plan):
    assert catch_up(mine, masters, map(queue, held), map(queue, configured)) == plan
