"""Test messages stored for a queue of another node: sent whole, kept, named, and found again."""

import asyncio
from collections import deque
from types import SimpleNamespace

import pytest

from brokerapp.core.redelivery.dead_lettering import DAMAGED
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.nodes.delivery import append_notices
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.protocol import PeerMessageType, pack_for_session, unpack_batch
from brokerapp.stomp import frames
from brokerapp.store import StoredLogEntry
from tests.nodes.parts import placement_of
from tests.protocol.clients import RawClient
from tests.waiting import wait_until

ME, OTHER, THIRD = NodeMember("a", "1"), NodeMember("b", "2"), NodeMember("c", "3")


def entry(log, number):
    message = Message(f"ID:{number}", f"message-id:ID\\c{number}\n".encode(), b"body")
    return LogEntry(log, number, message, size=len(message.stored()))


class AwayFromHome:
    """A node whose clients produce to a log at home elsewhere, and consume from it."""

    def __init__(self, monkeypatch):
        self.told, self.asked, self.given, self.waiting = [], [], [], 0
        self.homes = placement_of(ME.session, commits=self)
        self.homes.coordinator.join(NodeMembers(2, (ME, OTHER), ME.session))
        self.log = next(name for name in (f"queue://{n}" for n in range(20)) if not self.homes.is_local(name))
        monkeypatch.setattr(self.homes.peers, "send", lambda _session, *facts: self.told.append(facts))
        self.heard = True
        monkeypatch.setattr(self.homes.peers, "is_linked", lambda _session: self.heard)
        monkeypatch.setattr(self.homes.peers, "unsent_bytes", lambda _session: self.waiting)
        monkeypatch.setattr(self.homes.outbound_accounts, "has_consumers", lambda _log: True)
        monkeypatch.setattr(
            self.homes.outbound_deliveries, "on_delivery",
            lambda _session, key, _log, entries: self.given.append((key, [each.seq for each in entries])),
        )  # fmt: skip

    def submit(self, _write):
        """Nothing is stored."""

    def read_with(self, _question, callback, _log=None):
        """As the committer: the store answers later."""
        self.asked.append(callback)

    def store(self, *numbers, before=None, whole=True):
        entries = [entry(self.log, number) for number in numbers]
        note = self.homes.append_notices.add
        note(SimpleNamespace(name=self.log), len(numbers), numbers[-1], entries if whole else (), before)
        return entries

    def give(self, *numbers, key=7):
        self.homes.remote_deliveries.on_delivery(OTHER.session, key, self.log, list(numbers))

    def answer(self, *numbers):
        stored = [StoredLogEntry(number, entry(self.log, number).message, 0, 9, "", "") for number in numbers]
        self.asked.pop(0)(stored)


@pytest.fixture
def node(monkeypatch):
    return AwayFromHome(monkeypatch)


def test_a_home_is_told_once_a_tick_what_was_stored_and_with_the_messages_what_stood_before_them(node):
    node.store(3, 4, before=1)
    node.store(6, before=1)
    node.homes.append_notices.send()
    [(word, log, count, upto, runs, forgotten)] = node.told
    assert (word, log, count, upto, forgotten) == (PeerMessageType.APPENDED, node.log, 3, 6, 0)
    assert [run.previous_seq for run in runs] == [1, 1]
    heard = [each for run in runs for each in unpack_batch(node.log, run, ME.session)]
    assert [(each.seq, each.message.id, each.message.body) for each in heard] == [
        (3, "ID:3", b"body"), (4, "ID:4", b"body"), (6, "ID:6", b"body"),
    ]  # fmt: skip
    assert pack_for_session(ME.session, heard) == [3, 4, 6]


@pytest.mark.parametrize("what", ["returned once", "first of its group", "for a third node"])
def test_what_is_not_as_its_node_knows_it_is_given_whole(node, what):
    it = entry(node.log, 3)
    it.cached_at = THIRD.session if what == "for a third node" else ME.session
    it.redelivery_count, it.first_of_group = int(what == "returned once"), what == "first of its group"
    [packed] = pack_for_session(ME.session, [it])
    assert packed[-1] == it.message.stored()


def test_where_some_are_not_at_hand_or_the_home_does_not_read_it_is_told_how_many_came_and_reads_them_itself(node):
    node.store(3)
    node.store(4, whole=False)
    node.homes.append_notices.send()
    node.waiting = append_notices.MAX_UNSENT + 1
    node.store(5)
    node.homes.append_notices.send()
    assert [(word, upto, runs, forgotten) for word, _, *_, upto, runs, forgotten in node.told] == [
        (PeerMessageType.APPENDED, 4, None, None), (PeerMessageType.APPENDED, 5, None, None),
    ]  # fmt: skip


def test_nothing_is_packed_and_kept_for_a_home_that_does_not_hear_it(node):
    node.heard = False
    node.store(3)
    node.homes.append_notices.send()
    assert (node.told, node.homes.append_notices.take_cached(node.log, 3)) == ([], None)


def test_a_home_wants_messages_until_it_says_otherwise_the_log_is_gone_or_the_members_are_others(node):
    wished, is_followed = node.homes.append_notices.on_wish, node.homes.append_notices.wants_entries
    wished(THIRD.session, node.log, True)
    assert not is_followed(node.log)
    for end in (
        lambda: wished(OTHER.session, node.log, False),
        lambda: node.homes.on_log_removed(node.log),
        lambda: node.homes.coordinator.join(NodeMembers(3, (ME, OTHER), ME.session)),
    ):
        wished(OTHER.session, node.log, True)
        assert is_followed(node.log)
        end()
        assert not is_followed(node.log)


def test_what_was_stored_when_the_members_become_others_is_told_to_those_who_were_its_homes(node):
    async def barrier():  # its batch stores messages of clients, too: the pump comes later than who waits for it
        node.store(3, before=1)

    node.barrier, node.submit = barrier, lambda _unit: None
    asyncio.run(node.homes.coordinator.on_members_changed(NodeMembers(3, (ME, OTHER), ME.session)))
    assert [facts[0] for facts in node.told[:2]] == [PeerMessageType.APPENDED, PeerMessageType.EPOCH]
    node.told.clear()
    node.homes.append_notices.send()
    assert not node.told


def test_what_is_stored_in_a_log_that_is_about_to_be_taken_here_is_told_to_nobody_who_joins_later(node):
    node.homes.coordinator.join(NodeMembers(3, (ME,), ME.session))
    node.store(3, before=1)
    node.homes.coordinator.join(NodeMembers(4, (ME, OTHER), ME.session))
    node.told.clear()
    node.homes.append_notices.send()
    assert not node.told


def test_what_is_named_is_found_where_it_was_kept_and_only_once(node):
    node.store(3, 4)
    node.homes.append_notices.send()
    node.give(3, 4)
    assert node.given == [(7, [3, 4])]
    assert node.homes.append_notices.take_cached(node.log, 3) is None


def test_what_is_kept_is_bounded_and_what_was_forgotten_is_read_and_all_that_is_given_later_waits(node, monkeypatch):
    monkeypatch.setattr(append_notices, "CACHE_BYTES", 2 * append_notices.ENTRY_BYTES)
    node.store(3, 4)
    node.homes.append_notices.send()
    node.store(5)
    node.homes.append_notices.send()
    node.give(3, 4)
    node.give(5)
    assert (node.given, len(node.asked)) == ([], 1)
    node.answer(3, 4)
    assert node.given == [(7, [3, 4]), (7, [5])]
    node.give(6)
    node.answer(6)
    assert node.given[2:] == [(7, [6])]


def test_what_was_taken_makes_room_for_what_comes_and_the_home_is_told_what_was_forgotten(node, monkeypatch):
    room = 2 * (append_notices.ENTRY_BYTES + entry(node.log, 3).size)
    monkeypatch.setattr(append_notices, "CACHE_BYTES", room)
    for number in range(3, 9):
        node.store(number)
        if number == 5:
            node.give(4)
        node.homes.append_notices.send()
    assert [facts[-1] for facts in node.told] == [0, 0, 0, 3, 5, 6]
    node.give(7, 8)
    assert (node.given, node.asked) == ([(7, [4]), (7, [7, 8])], [])


def test_the_home_names_only_what_is_above_what_was_forgotten(node):
    heard = [entry(node.log, number) for number in (3, 4)]
    for each in heard:
        each.cached_at = ME.session
    assert [isinstance(each, int) for each in pack_for_session(ME.session, heard, 3)] == [False, True]


def test_what_is_missing_of_several_gifts_of_a_log_is_read_at_once_and_handed_over_in_order(node):
    node.give(3)
    node.give(4)
    node.give(5, key=8)
    node.answer(3)  # what came when it was asked
    node.answer(4, 5)
    assert (node.given, node.asked) == ([(7, [3]), (7, [4]), (8, [5])], [])


def test_of_what_the_store_has_no_more_the_home_is_told_so_and_that_others_may_be_given_instead(node):
    node.give(3, 4)
    node.answer(4)
    assert node.given == [(7, [4])]
    assert node.told == [(PeerMessageType.SETTLED, node.log, None, [3]), (PeerMessageType.CREDIT, 7, 1)]


def test_what_waits_for_the_store_was_never_given_when_its_home_or_the_link_is_another_one(node):
    node.give(3)
    node.homes.coordinator.on_link_down(OTHER.session)
    node.answer(3)
    node.give(4)
    node.homes.coordinator.join(NodeMembers(3, (ME,), ME.session))
    node.answer(4)
    assert (node.given, node.homes.remote_deliveries._pending) == ([], {})


def test_what_waits_for_the_store_is_given_where_the_members_are_others_and_its_home_is_the_same(node):
    node.give(3)
    members = NodeMembers(3, (ME, OTHER, THIRD), ME.session)
    assert members.owner_of(node.log) == OTHER.session
    node.homes.coordinator.join(members)
    first, second = node.asked
    node.asked = [first]
    node.answer(3)
    assert not node.given
    node.asked = [second]
    node.answer(3)
    assert node.given == [(7, [3])]


# -- of two nodes


@pytest.fixture
def away(broker, client, name):
    """A queue at home at `a`, and a producer and a consumer of `b`; what is read, and how `b` is given."""
    found = SimpleNamespace(
        queue=broker.queue_at("a", name), reads=[], remote_deliveries=[], sender=client("b"), taker=client("b")
    )
    log, undo = f"queue://{found.queue}", deque()
    for node in "ab":
        committer = broker[node].node.broker.commits
        read = committer.read
        committer.read = lambda *which, read=read: found.reads.append(which[0]) or read(*which)
        undo.append(lambda committer=committer: vars(committer).pop("read"))
    perform = broker["b"].node.broker.placement.inbox._handlers
    given = perform[PeerMessageType.DELIVER]
    perform[PeerMessageType.DELIVER] = lambda session, key, name, packed: (
        found.remote_deliveries.extend(packed if name == log else ()), given(session, key, name, packed),
    )  # fmt: skip
    undo.append(lambda: perform.__setitem__(PeerMessageType.DELIVER, given))
    yield found
    for each in undo:
        each()


def followed(broker, away, **headers):
    """Send until the home wants what comes whole; how many were sent."""
    is_followed, sent, is_told = broker["b"].node.broker.placement.append_notices.wants_entries, 0, False
    while not is_told:  # the first that is sent when the home is known to want it
        is_told = broker["b"].look(lambda: is_followed(f"queue://{away.queue}"))
        away.sender.send(f"/queue/{away.queue}", "before", persistent="true", **headers)
        away.taker.take()
        sent += 1
        assert sent < 20
    away.reads.clear()
    away.remote_deliveries.clear()
    return sent


def test_what_is_sent_and_consumed_away_from_the_home_is_neither_read_back_nor_carried_to_and_fro(broker, away):
    away.taker.subscribe(f"/queue/{away.queue}")
    followed(broker, away)
    for number in range(5):
        away.sender.send(f"/queue/{away.queue}", str(number), persistent="true")
        assert away.taker.bodies(1) == [str(number)]
    assert not away.reads
    assert all(isinstance(each, int) for each in away.remote_deliveries)
    assert len(away.remote_deliveries) == 5
    wait_until(lambda: broker.depth(away.queue) == 0, "all is acknowledged")


def test_what_was_forgotten_meanwhile_is_read_by_the_node_of_its_consumer_in_order(broker, away, monkeypatch):
    monkeypatch.setattr(broker["b"].node.broker.placement.append_notices, "take_cached", lambda _log, _number: None)
    away.taker.subscribe(f"/queue/{away.queue}")
    followed(broker, away)
    for number in range(30):
        away.sender.send(f"/queue/{away.queue}", str(number), persistent="true", wait=number % 5 == 4)
    messages = away.taker.take(30)
    assert [each.body for each in messages] == list(map(str, range(30)))
    assert not any("redelivered" in each.headers for each in messages)
    assert any(isinstance(each, int) for each in away.remote_deliveries)
    wait_until(lambda: broker.depth(away.queue) == 0, "all is acknowledged")


def test_what_is_damaged_when_the_node_of_its_consumer_reads_it_is_a_dead_letter(broker, away, monkeypatch):
    store = broker["b"].node._store
    call = store.client.call

    async def spoilt(function, *which):
        rows = await call(function, *which)
        if function != "read_these":
            return rows
        return [[value.replace(b"spoil this", b"spoil thus") for value in row] for row in rows]

    monkeypatch.setattr(store.client, "call", spoilt)
    monkeypatch.setattr(broker["b"].node.broker.placement.append_notices, "take_cached", lambda _log, _number: None)
    away.taker.subscribe(f"/queue/{away.queue}", prefetch=1)  # one that is not replaced would be its last
    followed(broker, away)
    for body in ("first", "spoil this", "last"):
        away.sender.send(f"/queue/{away.queue}", body, persistent="true")
    messages = away.taker.take(2)
    assert [(each.body, each.headers.get("redelivered")) for each in messages] == [("first", None), ("last", None)]
    assert any(isinstance(each, int) for each in away.remote_deliveries)
    wait_until(lambda: broker.depth(away.queue) == 0, "it is no longer in its queue")
    letters = broker.admin(lambda admin: admin.browse(Destination.queue("ActiveMQ.DLQ"), limit=1000)).messages
    [letter] = [each for each in letters if each.original_destination == f"/queue/{away.queue}"]
    assert (letter.body, letter.headers[CAUSE]) == (b"spoil thus", DAMAGED)


def test_what_its_node_forgot_is_given_to_it_whole(broker, away, monkeypatch):
    monkeypatch.setattr(append_notices, "CACHE_BYTES", 0)
    away.taker.subscribe(f"/queue/{away.queue}")
    followed(broker, away)
    for number in range(5):
        away.sender.send(f"/queue/{away.queue}", str(number), persistent="true")
    assert away.taker.bodies(5) == list("01234")
    assert len(away.remote_deliveries) == 5
    assert not any(isinstance(each, int) for each in away.remote_deliveries)


def test_what_was_named_and_given_back_comes_again_flagged(broker, client, away):
    away.taker.subscribe(f"/queue/{away.queue}", ack="client-individual")
    sent = followed(broker, away)
    away.sender.send(f"/queue/{away.queue}", "again", persistent="true")
    assert away.taker.bodies(1) == ["again"]
    away.taker.break_off()
    other = client("b")
    other.subscribe(f"/queue/{away.queue}", ack="client-individual")
    messages = {each.body: each.headers.get("redelivered") for each in other.take(sent + 1)}
    assert messages["again"] == "true"


@pytest.mark.parametrize("node", ["a", "b"])
def test_several_units_of_one_batch_are_given_in_order_and_not_read_back(broker, away, node):
    away.taker.subscribe(f"/queue/{away.queue}", prefetch=100)
    followed(broker, away)
    sender = RawClient(broker[node].port)
    sends = ({"destination": f"/queue/{away.queue}", "persistent": "true", "n": str(n)} for n in range(20))
    sender.write(b"".join(frames.encode("SEND", each, each["n"].encode()) for each in sends))  # no two are alike
    assert away.taker.bodies(20) == list(map(str, range(20)))
    assert not away.reads
    sender.close()


def test_selectors_and_groups_decide_over_what_other_nodes_store(broker, client, away):
    red, blue = away.taker, client("a")
    red.subscribe(f"/queue/{away.queue}", selector="colour = 'red'")
    blue.subscribe(f"/queue/{away.queue}", selector="colour = 'blue'")
    followed(broker, away, colour="red")
    for number in range(10):
        headers = {"colour": "red" if number % 2 else "blue", "JMSXGroupID": f"g{number % 2}"}
        away.sender.send(f"/queue/{away.queue}", str(number), persistent="true", **headers)
    assert (red.bodies(5), blue.bodies(5)) == (list("13579"), list("02468"))
    assert not away.reads
