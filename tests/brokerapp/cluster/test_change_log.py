"""Test how a broker of a cluster applies the master's responses and notices, in any order."""

from types import SimpleNamespace

import pytest

from brokerapp.cluster.change_log import ChangeLog
from brokerapp.cluster.peer import ClusterPeer
from brokerapp.cluster.record import ClusterChange, ClusterRecord, RecordedItem
from brokerapp.cluster.settings import ClusterMember
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.network.options.address import BrokerAddress

DURABLE = ClusterChange.of_subscription(SubscriptionIdentity("me", "all", (Destination.topic("news"),), None))
GONE = ClusterChange(DURABLE.name, False, DURABLE.attributes)


class Here:
    """What a broker holds and does, its store, and its link to the master."""

    def __init__(self):
        self.holds, self.done, self.asked = [], [], []
        context = SimpleNamespace(
            name="x", session="s", commits=SimpleNamespace(keep_record=lambda *about: about[-1]())
        )
        self.master = ClusterPeer(ClusterMember("m", BrokerAddress("m", 1)))
        self.master.on_connected(
            SimpleNamespace(
                send=lambda _command, headers, _body: self.asked.extend(
                    [headers["receipt"]] if "receipt" in headers else []
                )
            )
        )
        self.recording = ChangeLog(
            context=context,
            master="m",
            peers={"m": self.master},
            record=ClusterRecord(),
            configured=(),
            target=self,
        )
        self.tell(1)

    is_shared = False

    def concerns(self, _change):
        return True

    def apply_later(self, change):
        self.done.append(change)

    def call_when_applied(self, then):
        then()

    def existing(self):
        return self.holds

    def tell(self, version, *changes, first=True, last=True):
        """The master tells a part of its record."""
        entries = [[change.name, number, change.attributes] for number, change in changes]
        self.recording.on_record_part("m", "r", version, entries, first=first, last=last)

    def make(self, change, version):
        """It is made here, and the master answers that it recorded it."""
        outcome = []
        self.recording.change(change, outcome.append)
        self.master.on_confirmed(f"{self.asked[-1]} {version}")
        assert outcome == [""]
        self.holds.append(change)


@pytest.mark.parametrize(
    "record", [pytest.param((2, (2, DURABLE)), id="with it"), pytest.param((1,), id="from before it")]
)
def test_what_was_made_here_stays_though_the_master_tells_of_it_late(record):
    here = Here()
    here.make(DURABLE, 2)
    here.tell(*record)
    assert here.done == []
    assert here.recording.record.entries == {DURABLE.name: RecordedItem(2, DURABLE.attributes)}


def test_a_deletion_from_before_it_was_made_anew_here_is_ignored():
    here = Here()
    here.make(DURABLE, 3)
    here.recording.on_change("m", "r", 2, GONE)
    assert here.done == []
    here.recording.on_change("m", "r", 3, DURABLE)
    here.recording.on_change("m", "r", 4, GONE)
    assert here.done[-1] == GONE
    assert here.recording.record == ClusterRecord("r", 4, {})


def test_a_record_that_broke_off_while_it_was_told_is_forgotten():
    here = Here()
    here.tell(2, (2, DURABLE), last=False)
    here.tell(3)
    assert here.recording.record == ClusterRecord("r", 3, {})
    assert here.done == []


# -- a broker of several nodes


QUEUE = ClusterChange.of_destination(Destination.queue("orders"))
NO_QUEUE = ClusterChange.of_destination(Destination.queue("orders"), False)


def test_what_another_node_may_have_made_meanwhile_is_deleted_only_if_it_is_missing_in_a_later_record_too():
    here = Here()
    here.is_shared, here.holds = True, [QUEUE]
    here.tell(2)
    assert here.done == []
    here.tell(3)
    assert here.done == [NO_QUEUE]


def test_what_was_on_its_way_when_the_record_was_sent_stays():
    here = Here()
    here.is_shared, here.holds = True, [QUEUE]
    here.tell(2)
    here.tell(3, (3, QUEUE))
    here.tell(4, (3, QUEUE))
    assert here.done == []


class Master(Here):
    """A node of the master."""

    def __init__(self, stored):
        super().__init__()
        self.kept = []
        commits = SimpleNamespace(keep_record=lambda *about: (self.kept.append(about[:-1]), about[-1]()))
        self.answers = []
        self.recording = ChangeLog(
            context=SimpleNamespace(name="m", session="s", commits=commits),
            master="m", peers={}, record=stored, configured=(), target=self,
        )  # fmt: skip

    def request(self, change):
        self.recording.on_change_requested(change, lambda why, version: self.answers.append((why, version)))


def test_a_node_of_the_master_records_only_once_it_leads_and_from_what_is_stored():
    node = Master(ClusterRecord("r", 4))
    node.request(QUEUE)
    [(why, version)] = node.answers
    assert ("not the one that keeps the cluster's record" in why, version) == (True, 0)
    assert (node.recording.is_current, node.kept) == (False, [])
    node.recording.lead(ClusterRecord("r", 7))  # the node before it recorded more than this one has heard of
    node.request(QUEUE)
    assert node.answers[1:] == [("", 8)]
    assert [about[:2] for about in node.kept] == [("r", 8)]
    assert (node.recording.is_current, node.recording.refusal_reason) == (True, "")
