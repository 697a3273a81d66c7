"""Test that a node keeps no more of logs owned elsewhere than it needs."""

from collections import deque
from types import SimpleNamespace

import pytest

from brokerapp.errors import AccessDenied, RequestRefused
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.pending_confirmations import PendingConfirmations
from brokerapp.nodes.links.protocol import PeerMessageType
from tests.nodes.parts import Queues, placement_of

ME, OTHER = NodeMember("a", "1"), NodeMember("b", "2")
NAMES = [f"queue://{number}" for number in range(20)]


@pytest.fixture
def homes():
    """Of a node that is alone."""
    return placement_of(ME.session, queues=Queues.fromkeys(NAMES, "a log"))


def entry(number):
    return SimpleNamespace(seq=number, redelivery_count=1)


def test_nothing_is_kept_of_logs_of_which_nothing_came_back_or_nobody_consumes(homes):
    homes.handoff.on_requeued(NAMES[0], [])
    assert not list(homes.outbound_consumers.known_consumers(SimpleNamespace(name=NAMES[0], is_remote=True)))
    assert (dict(homes.handoff._requeued), dict(homes.outbound_accounts._accounts)) == ({}, {})


def test_what_came_back_before_its_home_took_it_is_kept_until_the_log_is_gone_or_at_home_elsewhere(homes):
    two = NodeMembers(2, (ME, OTHER), ME.session)
    for name in NAMES:
        homes.handoff.on_requeued(name, [entry(1)])
    homes.coordinator.join(two)
    here = [name for name in NAMES if two.is_local(name)]
    assert 0 < len(here) < len(NAMES)
    assert list(homes.handoff._requeued) == here
    homes.on_log_removed(here[0])
    assert list(homes.handoff._requeued) == here[1:]


def test_a_node_that_has_not_come_to_an_epoch_has_not_told_in_it_what_its_clients_hold(monkeypatch):
    homes, reached = placement_of(ME.session), []
    monkeypatch.setattr(homes.remote_unacked, "on_epoch_done", reached.append)
    homes.coordinator.join(NodeMembers(2, (ME, OTHER), ME.session))
    homes.coordinator.on_logs_loaded()
    for epoch in (1, 2):  # its link comes up before it knows of the second
        assert not reached
        homes.coordinator.on_message(OTHER.session, PeerMessageType.EPOCH, [epoch])
        homes.coordinator.on_message(OTHER.session, PeerMessageType.EPOCH_DONE, [epoch])
    assert reached == [OTHER.session]


def test_a_consumer_of_which_one_queue_goes_may_be_given_as_much_of_the_others_and_keeps_what_came_of_them(monkeypatch):
    homes = placement_of(ME.session)
    homes.coordinator.join(NodeMembers(2, (ME, OTHER), ME.session))
    goes, stays = [each for each in NAMES if not homes.is_local(each)][:2]
    told, consumer = [], object()
    accounts, deliveries, abroad = homes.outbound_accounts, homes.outbound_deliveries, homes.outbound_consumers
    monkeypatch.setattr(homes.peers, "send", lambda _session, *facts: told.append(facts))
    accounts._keys[consumer] = 7
    held = {number: SimpleNamespace(log=log, seq=number) for number, log in ((1, goes), (2, goes), (3, stays))}
    for number, each in held.items():
        accounts.of(each.log).unacked[number] = (consumer, each)
    deliveries._undelivered[consumer] = deque([held[2], held[3]])  # its client has the first
    abroad.drop_consumer(consumer, goes)
    abroad.detach(consumer, SimpleNamespace(name=goes))
    assert told == [
        (PeerMessageType.CREDIT, 7, 2), (PeerMessageType.DETACH, 7, goes), (PeerMessageType.REQUEUED, goes, [2], False),
    ]  # fmt: skip
    assert list(deliveries._undelivered[consumer]) == [held[3]]


@pytest.mark.parametrize("record", [{"session": "2"}, {"session": "2", "last_word": PeerMessageType.DISPATCHED}])
def test_a_node_is_told_what_was_sent_out_unless_its_version_does_not_know_that_word(monkeypatch, record):
    homes, told = placement_of(ME.session), []
    homes.coordinator.join(NodeMembers(2, (ME, NodeMember.from_record("b", record)), ME.session))
    monkeypatch.setattr(homes.peers, "send", lambda _session, *facts: told.append(facts))
    log = next(each for each in NAMES if not homes.is_local(each))
    homes.handoff_announcements._dispatched[log] = [(7, 0)]
    homes.handoff_announcements._send_dispatched(OTHER.session)
    assert told == ([(PeerMessageType.DISPATCHED, log, [(7, 0)])] if "last_word" in record else [])


class Asking:
    """A client, as far as what it waits for knows it."""

    id = 1

    def on_write_started(self):
        pass

    on_write_done = on_write_started


@pytest.mark.parametrize("refusal", [AccessDenied("may not read"), RequestRefused("has a consumer")])
def test_a_client_that_waited_for_other_nodes_is_refused_as_it_would_have_been_at_once(refusal):
    told = []
    client = Asking()
    replies = SimpleNamespace(refuse=lambda _client, error, _receipt: told.append(error))
    pending = PendingConfirmations(clients={1}, replies=replies)
    pending.wait(client, None, lambda then: then(refusal), lambda: pytest.fail("it went on"))
    assert told == [refusal]
