"""Test dispatch of a log: which consumer gets which message when, paging, and the order of returned messages."""

import contextlib
import itertools
from collections import deque
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from brokerapp.engine.dispatch import dispatch_window, selective_dispatch
from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE, WINDOW_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import closing_mark
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import UNCOMMITTED, LogEntry
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.model.stats_records import DestinationStats
from brokerapp.selectors import compile_selector

QUEUE = Destination.queue("q")


def consumer(name="c", prefetch=10, selector=None):
    made = Subscription(
        name, name, name, SimpleNamespace(is_socket_full=False), (QUEUE,), "client", prefetch,
        compile_selector(selector) if selector else None,
    )  # fmt: skip
    made.started = True
    return made


def entry(seq, size=100, **headers):
    head = "".join(f"{name}:{value}\n" for name, value in {"message-id": f"ID\\c{seq}", **headers}.items())
    priority = int(headers.get("priority", 4))
    message = Message(f"ID:{seq}", head.encode(), b"", priority=priority, has_group="JMSXGroupID" in headers)
    return LogEntry(str(QUEUE), seq, message, size=size)


def log_of(*consumers, depth=0, suspect=0):
    made = MessageLog(DestinationStats(QUEUE), depth, suspect)
    made.consumers.extend(consumers)
    return made


def given_out(log):
    """Who is given what now, in the order of the messages; each consumer gets its own in that order."""
    given = log.dispatch()
    for _, entries in given:
        assert [each.seq for each in entries] == sorted(each.seq for each in entries)
    pairs = [(subscription, each) for subscription, entries in given for each in entries]
    return sorted(pairs, key=lambda pair: pair[1].seq)


def dispatched(log):
    """The same by name and number."""
    return [(subscription.name, each.seq) for subscription, each in given_out(log)]


def page(log, stored):
    """Read on in the store, as the broker does."""
    log.paging = True
    log.on_page_read([entry(seq) for seq in stored if seq > log.loaded_up_to][:PAGE_SIZE], log.generation)


# -- who gets what


def test_consumers_take_turns():
    log = log_of(consumer("a"), consumer("b"), consumer("c"))
    for seq in range(1, 7):
        log.append_batch([entry(seq)])
    assert dispatched(log) == [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("b", 5), ("c", 6)]
    log.append_batch([entry(7)])
    assert dispatched(log) == [("a", 7)]


def test_a_consumer_without_credit_is_passed_over_until_it_has_some():
    small, large = consumer("small", prefetch=1), consumer("large", prefetch=3)
    log = log_of(small, large)
    for seq in range(1, 7):
        log.append_batch([entry(seq)])
    assert dispatched(log) == [("small", 1), ("large", 2), ("large", 3), ("large", 4)]
    assert dispatched(log) == []
    small.credit += 1
    assert dispatched(log) == [("small", 5)]


@pytest.mark.parametrize("why_not", ["blocked", "not started"])
def test_a_consumer_that_cannot_take_anything_gets_nothing(why_not):
    idle, ready = consumer("idle"), consumer("ready")
    if why_not == "blocked":
        idle.client.is_socket_full = True
    else:
        idle.started = False
    log = log_of(idle, ready)
    for seq in range(1, 4):
        log.append_batch([entry(seq)])
    assert dispatched(log) == [("ready", 1), ("ready", 2), ("ready", 3)]


def test_a_paused_log_gives_out_nothing():
    log = log_of(consumer())
    log.append_batch([entry(1)])
    log.paused = True
    assert dispatched(log) == []
    log.paused = False
    assert dispatched(log) == [("c", 1)]


def test_lower_priorities_get_what_the_higher_ones_have_no_credit_for():
    low, high, also_high = consumer("low"), consumer("high", prefetch=2), consumer("also high", prefetch=1)
    low.priority, high.priority, also_high.priority = 1, 5, 5
    log = log_of(low, high, also_high)
    for seq in range(1, 6):
        log.append_batch([entry(seq)])
    assert dispatched(log) == [("high", 1), ("also high", 2), ("high", 3), ("low", 4), ("low", 5)]


def test_an_exclusive_consumer_gets_everything_also_while_it_has_no_credit():
    ordinary, first, second = consumer("ordinary"), consumer("first", prefetch=2), consumer("second")
    first.exclusive = second.exclusive = True
    log = log_of(ordinary, first, second)
    for seq in range(1, 4):
        log.append_batch([entry(seq)])
    assert dispatched(log) == [("first", 1), ("first", 2)]
    assert dispatched(log) == []
    log.consumers.remove(first)
    assert dispatched(log) == [("second", 3)]


# -- selectors


def test_what_a_selector_does_not_take_stays_for_others_and_blocks_nobody():
    red = consumer("red", selector="colour = 'red'")
    log = log_of(red)
    for seq, colour in enumerate(["blue", "red", "blue", "red"], start=1):
        log.append_batch([entry(seq, colour=colour)])
    assert dispatched(log) == [("red", 2), ("red", 4)]
    log.consumers.append(consumer("any"))
    assert dispatched(log) == [("any", 1), ("any", 3)]


def test_consumers_with_and_without_selector_share_what_both_take():
    log = log_of(consumer("red", selector="colour = 'red'"), consumer("any"))
    for seq, colour in enumerate(["red", "red", "blue", "red"], start=1):
        log.append_batch([entry(seq, colour=colour)])
    assert dispatched(log) == [("red", 1), ("any", 2), ("any", 3), ("red", 4)]


def test_what_a_consumer_wanted_while_it_had_no_credit_it_gets_later():
    red = consumer("red", prefetch=1, selector="colour = 'red'")
    log = log_of(red)
    for seq, colour in enumerate(["blue", "red", "blue", "red", "red"], start=1):
        log.append_batch([entry(seq, colour=colour)])
    assert dispatched(log) == [("red", 2)]
    red.credit += 1
    assert dispatched(log) == [("red", 4)]
    log.append_batch([entry(6, colour="red")])
    red.credit += 2
    assert dispatched(log) == [("red", 5), ("red", 6)]


def test_a_message_that_was_tested_is_not_tested_again_until_it_has_changed(monkeypatch):
    tests = []
    real = selective_dispatch.selector_headers
    monkeypatch.setattr(
        selective_dispatch, "selector_headers", lambda each, at: tests.append(each.seq) or real(each, at)
    )
    red = consumer("red", selector="colour = 'red'")
    log = log_of(red)
    for seq in range(1, 4):
        log.append_batch([entry(seq, colour="blue")])
    dispatched(log)
    log.append_batch([entry(4, colour="blue")])
    dispatched(log)
    assert tests == [1, 2, 3, 4]


def test_a_returned_message_is_tested_again_also_as_redelivered():
    other, again = consumer("other"), consumer("again", selector="redelivered = 'true'")
    log = log_of(other, again)
    log.append_batch([entry(1)])
    [(_, given)] = given_out(log)
    assert dispatched(log) == []
    log.consumers.remove(other)
    log.requeue([given])
    assert dispatched(log) == [("again", 1)]


# -- priorities


def prioritized(*consumers, depth=0):
    log = log_of(*consumers, depth=depth)
    log.apply_policy(DispatchPolicy(prioritized=True))
    return log


def test_a_prioritized_queue_gives_out_the_most_urgent_first_and_equals_in_order():
    log = prioritized(one := consumer("one", prefetch=0))
    for seq, priority in enumerate([4, 9, 0, 9, 4], start=1):
        log.append_batch([entry(seq, priority=str(priority))])
    one.credit = 10
    assert [seq for _, seq in pairs(log)] == [2, 4, 1, 5, 3]


def in_order(log, stored):
    """The store of a prioritized log, read to its end: what is given out on the way."""
    stored, seen = sorted(stored, key=log.order_key), []
    while True:
        seen += [seq for _, seq in pairs(log)]
        if not log.needs_page:
            return seen
        log.on_page_read(
            [each for each in stored if log.order_key(each) > log.loaded_up_to][:PAGE_SIZE], log.generation
        )


def test_a_prioritized_backlog_of_any_length_is_given_out_in_order():
    stored = [entry(seq, priority=str(seq % 10)) for seq in range(1, 5 * PAGE_SIZE)]
    log = prioritized(consumer("one", prefetch=len(stored)), depth=len(stored))
    assert in_order(log, stored) == sorted(range(1, 5 * PAGE_SIZE), key=lambda seq: (-(seq % 10), seq))


def test_an_urgent_message_overtakes_a_backlog_that_is_not_read(monkeypatch):
    monkeypatch.setattr(dispatch_window, "WINDOW_SIZE", 10)
    log = prioritized(one := consumer("one", prefetch=1), depth=50)
    stored = [entry(seq) for seq in range(1, 51)]
    assert in_order(log, stored) == [1]
    log.append_batch([entry(51, priority="9")])
    one.credit = 1
    assert pairs(log) == [("one", 51)]


def test_a_prioritized_window_gives_its_end_back_to_the_store(monkeypatch):
    monkeypatch.setattr(dispatch_window, "WINDOW_SIZE", 10)
    log, stored = prioritized(one := consumer("one", prefetch=0)), []
    for seq in range(1, 60):
        stored.append(entry(seq, priority=str(seq % 10)))
        log.append_batch([stored[-1]])
        assert len(log.ready) <= 20
    one.credit = 100
    assert in_order(log, stored) == [each.seq for each in sorted(stored, key=log.order_key)]


def pairs(log):
    """Who is given what now, as it is given."""
    return [(consumer.name, each.seq) for consumer, entries in log.dispatch() for each in entries]


# -- what comes back


def test_returned_messages_take_their_old_places_flagged():
    first = consumer("first", prefetch=4)
    log = log_of(first)
    for seq in range(1, 7):
        log.append_batch([entry(seq)])
    given = {each.seq: each for _, each in given_out(log)}
    log.remove_settled([given.pop(2)])
    log.requeue(reversed(given.values()))
    assert [(each.seq, each.redelivery_count) for each in log.ready] == [(1, 1), (3, 1), (4, 1), (5, 0), (6, 0)]
    assert (log.depth, log.in_flight) == (5, 0)
    first.credit = 10
    assert [seq for _, seq in dispatched(log)] == [1, 3, 4, 5, 6]


def test_a_message_that_came_back_is_remembered_as_such_while_it_is_not_in_memory():
    log = log_of(one := consumer("one", prefetch=1))
    for seq in range(1, 4):
        log.append_batch([entry(seq)])
    [(_, given)] = given_out(log)
    log.requeue([given])
    log.consumers.clear()
    log.release_memory()
    assert not log.ready
    log.consumers.append(one)
    page(log, range(1, 4))
    assert [(each.seq, each.redelivery_count) for each in log.ready] == [(1, 1), (2, 0), (3, 0)]


def test_after_a_crash_everything_up_to_the_mark_counts_as_delivered_before():
    log = log_of(consumer(), depth=4, suspect=2)
    page(log, range(1, 5))
    assert [each.redelivery_count for each in log.ready] == [1, 1, 0, 0]


# -- what is in memory


def test_without_consumers_nothing_is_held_in_memory():
    log = log_of()
    log.append_batch([entry(1)])
    log.note_appended()
    assert (log.depth, log.unloaded_count, len(log.ready)) == (2, 2, 0)


def test_what_nobody_told_of_is_read_before_what_is_new_also_when_the_window_was_forgotten_meanwhile():
    log = log_of(one := consumer())
    log.recheck_store()
    log.remove_consumer(one)
    log.consumers.append(one)
    assert not log.dispatch_uncommitted([entry(UNCOMMITTED)])
    log.append_batch([entry(2)])
    assert log.needs_page
    page(log, [1, 2])
    assert dispatched(log) == [("c", 1), ("c", 2)]


def test_what_waits_and_nobody_told_of_is_not_forgotten_when_something_new_comes_that_nobody_takes():
    log = log_of(consumer(selector="colour = 'red'"))
    page(log, [1])
    assert dispatched(log) == []
    assert not log.dispatch_uncommitted([entry(UNCOMMITTED)])
    assert [each.seq for each in log.ready] == [1]


def test_what_waited_for_the_owner_of_its_group_goes_to_the_next_one_before_what_is_new():
    log = log_of(owner := consumer("owner", prefetch=1), consumer("other"))
    for seq in (1, 2):
        log.append_batch([entry(seq, JMSXGroupID="g")])
    assert dispatched(log) == [("owner", 1)]
    log.remove_consumer(owner)
    log.append_batch([entry(3, JMSXGroupID="g")])
    [(_, given)] = log.dispatch()
    assert [each.seq for each in given] == [2, 3]


def test_all_that_nobody_told_of_is_read_page_by_page_to_its_end():
    log = log_of(consumer(prefetch=5 * PAGE_SIZE))
    log.recheck_store()
    for first in (1, PAGE_SIZE + 1):
        page(log, range(first, first + PAGE_SIZE))
        assert len(dispatched(log)) == PAGE_SIZE
        assert log.needs_page
    page(log, [])
    assert not log.needs_page


@pytest.mark.parametrize(("size", "expected"), [(100, WINDOW_SIZE), (1024 * 1024, 8), (100 * 1024 * 1024, 1)])
def test_the_window_is_bounded_by_messages_and_by_bytes(size, expected):
    log = log_of(consumer(prefetch=0))
    for seq in range(1, WINDOW_SIZE + 100):
        log.append_batch([entry(seq, size=size)])
    assert len(log.ready) == expected
    assert log.ready_bytes == expected * size
    assert log.unloaded_count == log.depth - expected


def test_a_new_message_does_not_overtake_those_outside_the_window():
    log = log_of(one := consumer(prefetch=WINDOW_SIZE), depth=3)
    log.append_batch([entry(4)])
    assert dispatched(log) == []
    assert log.needs_page
    page(log, range(1, 5))
    assert dispatched(log) == [(one.name, seq) for seq in range(1, 5)]
    assert not log.needs_page
    log.append_batch([entry(5)])
    assert dispatched(log) == [(one.name, 5)]


def test_a_page_is_wanted_only_when_somebody_can_take_it():
    log = log_of(depth=10)
    assert not log.needs_page
    log.consumers.append(one := consumer(prefetch=1))
    assert log.needs_page
    one.credit = 0
    assert not log.needs_page
    one.credit, log.paging = 1, True
    assert not log.needs_page
    log.paging, log.paused = False, True
    assert not log.needs_page


def read_ahead(log, stored, colour=lambda seq: "blue"):
    """Read on past the window, as the broker does; whether the log wanted that."""
    after = log.lookahead_position
    if after is None:
        return False
    log.paging = True
    page = itertools.islice((seq for seq in stored if seq > after), PAGE_SIZE)
    log.on_lookahead_read([entry(seq, colour=colour(seq)) for seq in page], log.generation, after)
    return True


def blue_window(*consumers, depth):
    """A log whose window is filled with blue messages that nobody wants."""
    log = log_of(*consumers, depth=depth)
    while log.needs_page:
        following = range(log.loaded_up_to + 1, depth + 1)[:PAGE_SIZE]
        log.on_page_read([entry(seq, colour="blue") for seq in following], log.generation)
        dispatched(log)
    return log


def test_past_a_window_nobody_wants_the_log_reads_on_without_holding_more():
    last = 20_000
    log = blue_window(consumer("red", selector="colour = 'red'"), depth=last)
    found = []
    while read_ahead(log, range(log.loaded_up_to + 1, last + 1), lambda seq: "red" if seq == last else "blue"):
        found += dispatched(log)
        assert len(log.ready) <= WINDOW_SIZE
    assert found == [("red", last)]
    assert log.loaded_up_to < WINDOW_SIZE, "the window stayed where it was"


def test_at_the_end_a_new_message_past_the_window_is_given_out_without_a_read():
    log = blue_window(consumer("red", selector="colour = 'red'"), depth=2 * PAGE_SIZE)
    while read_ahead(log, range(log.loaded_up_to + 1, 2 * PAGE_SIZE + 1)):
        dispatched(log)
    log.append_batch([entry(2 * PAGE_SIZE + 1, colour="red")])
    assert dispatched(log) == [("red", 2 * PAGE_SIZE + 1)]
    assert log.lookahead_position is None


def test_what_was_given_out_past_the_window_is_not_given_out_again_when_the_window_gets_there():
    log = blue_window(red := consumer("red", selector="colour = 'red'"), depth=2 * PAGE_SIZE)
    special = PAGE_SIZE + 5
    read_ahead(log, range(log.loaded_up_to + 1, 2 * PAGE_SIZE + 1), lambda seq: "red" if seq == special else "blue")
    [(_, given)] = given_out(log)
    log.lookahead.discard_page()
    log.consumers.append(consumer("any", prefetch=10 * PAGE_SIZE))
    seen = dispatched(log)
    while log.needs_page:
        page(log, range(1, 2 * PAGE_SIZE + 1))
        seen += dispatched(log)
    assert [seq for _, seq in seen] == [seq for seq in range(1, 2 * PAGE_SIZE + 1) if seq != special]
    red.credit = 0
    log.requeue([given])
    assert dispatched(log) == [("any", special)]


def test_a_message_that_comes_back_past_the_window_is_given_out_from_there_again():
    log = blue_window(consumer("red", selector="colour = 'red'"), depth=2 * PAGE_SIZE)
    stored, special = range(log.loaded_up_to + 1, 2 * PAGE_SIZE + 1), PAGE_SIZE + 5
    read_ahead(log, stored, lambda seq: "red" if seq == special else "blue")
    [(_, given)] = given_out(log)
    log.requeue([given])
    assert dispatched(log) == []
    read_ahead(log, stored, lambda seq: "red" if seq == special else "blue")
    [(_, again)] = given_out(log)
    assert (again.seq, again.redelivery_count) == (special, 1)


def test_a_consumer_with_little_credit_goes_through_a_page_without_reading_it_again():
    log = blue_window(red := consumer("red", prefetch=1, selector="colour = 'red'"), depth=2 * PAGE_SIZE)
    assert read_ahead(log, range(log.loaded_up_to + 1, 2 * PAGE_SIZE + 1), lambda seq: "red")
    for seq in range(PAGE_SIZE + 1, PAGE_SIZE + 20):
        assert dispatched(log) == [("red", seq)]
        red.credit += 1
        assert log.lookahead_position is not None or seq == PAGE_SIZE + 19 or log.lookahead


def test_a_page_past_the_window_disturbs_nobody_when_who_wanted_it_left():
    log = blue_window(red := consumer("red", selector="colour = 'red'"), depth=2 * PAGE_SIZE)
    read_ahead(log, range(log.loaded_up_to + 1, 2 * PAGE_SIZE + 1))
    log.consumers.append(whole := consumer("any", prefetch=PAGE_SIZE))
    assert len(dispatched(log)) == PAGE_SIZE
    log.remove_consumer(red)
    whole.credit += 1
    assert dispatched(log) == []
    page(log, range(1, 2 * PAGE_SIZE + 1))
    assert dispatched(log) == [("any", PAGE_SIZE + 1)]


def test_a_consumer_that_has_not_seen_what_lies_before_a_page_gets_nothing_of_it():
    log = blue_window(consumer("red", selector="colour = 'red'"), depth=3 * PAGE_SIZE)
    stored = range(log.loaded_up_to + 1, 3 * PAGE_SIZE + 1)
    while read_ahead(log, stored):
        dispatched(log)
    log.consumers.append(blue := consumer("blue", prefetch=2 * PAGE_SIZE, selector="colour = 'blue'"))
    log.append_batch([entry(3 * PAGE_SIZE + 1, colour="blue")])
    seen = dispatched(log)
    while blue.credit and (log.needs_page or log.lookahead_position is not None):
        if log.needs_page:
            page_of(log, stored, "blue")
        else:
            read_ahead(log, stored)
        seen += dispatched(log)
    assert [seq for _, seq in seen] == list(range(1, 2 * PAGE_SIZE + 1))


def page_of(log, stored, colour):
    log.paging = True
    log.on_page_read(
        [entry(seq, colour=colour) for seq in stored if seq > log.loaded_up_to][:PAGE_SIZE], log.generation
    )


def test_equal_selectors_are_evaluated_once_for_a_message(monkeypatch):
    evaluated = []
    red = [consumer(str(n), selector="colour = 'red'") for n in range(20)]
    monkeypatch.setattr(type(red[0].selector), "matches", lambda self, headers: evaluated.append(1) or False)
    log = log_of(*red)
    log.append_batch([entry(1, colour="blue")])
    assert dispatched(log) == []
    assert len(evaluated) == 1


def test_a_page_read_for_a_window_that_is_forgotten_is_of_no_use():
    log = log_of(one := consumer(prefetch=5), depth=10)
    page(log, range(1, 6))
    given = [each for _, each in given_out(log)]
    log.paging, window = True, log.generation
    late = [entry(seq) for seq in range(6, 11)]
    log.requeue(given)
    log.consumers.clear()
    log.release_memory()
    log.on_page_read(late, window)
    log.consumers.append(one)
    one.credit = 10
    page(log, range(1, 11))
    assert [seq for _, seq in dispatched(log)] == list(range(1, 11))


def test_taking_out_leaves_what_consumers_hold():
    one = consumer(prefetch=2)
    log = log_of(one, depth=10)
    page(log, range(1, 6))
    log.unloaded_count = 5
    assert len(dispatched(log)) == 2
    assert log.remove_ready([entry(seq) for seq in range(1, 9)]) == {3, 4, 5, 6, 7, 8}
    assert (log.depth, log.unloaded_count, len(log.ready), log.ready_bytes) == (4, 2, 0, 0)


# -- what is given early


def coming(*bodies, **headers):
    """Entries that are on their way to the store."""
    made = [entry(number, **headers) for number in bodies]
    for each in made:
        each.seq = UNCOMMITTED
    return made


def given_early(log, entries):
    return [
        (subscription.name, [number_of(each) for each in theirs])
        for subscription, theirs in log.dispatch_uncommitted(entries)
    ]


def test_what_comes_is_given_early_to_consumers_in_turn_and_numbered_when_it_is_stored():
    log = log_of(consumer("a"), consumer("b"))
    entries = coming(1, 2, 3)
    assert given_early(log, entries) == [("a", [1, 3]), ("b", [2])]
    assert (log.depth, log.in_flight, log.uncommitted_bytes, log.dispatched_up_to) == (3, 3, 300, 0)
    log.on_committed(entries, (1, 2, 3), (0, 0, 0))
    assert [each.seq for each in entries] == [1, 2, 3]
    assert (log.loaded_up_to, log.dispatched_up_to, log.uncommitted_bytes) == (3, 3, 0)


@pytest.mark.parametrize(
    "why_not", ["no consumer", "paused", "waiting", "paging", "too little credit", "blocked", "unwanted"]
)
def test_nothing_is_given_early_when(why_not):
    one = consumer(prefetch=1 if why_not == "too little credit" else 10)
    log = log_of(*([] if why_not == "no consumer" else [one]))
    log.paused, log.paging = why_not == "paused", why_not == "paging"
    one.client.is_socket_full = why_not == "blocked"
    if why_not == "waiting":
        log.append_batch([entry(1)])
    if why_not == "unwanted":
        one.selector = compile_selector("colour = 'red'")
    before = log.depth, log.in_flight, log.ready_bytes
    assert given_early(log, coming(2, colour="blue") if why_not == "unwanted" else coming(2, 3)) == []
    assert (log.depth, log.in_flight, log.ready_bytes, log.uncommitted_bytes) == (*before, 0)


def test_where_it_matters_who_gets_which_one_message_is_given_early_to_who_wants_it():
    log = log_of(consumer("red", prefetch=1, selector="colour = 'red'"), consumer("blue", selector="colour = 'blue'"))
    assert given_early(log, coming(1, colour="blue")) == [("blue", [1])]
    assert given_early(log, coming(2, 3, colour="blue")) == []
    assert given_early(log, coming(4, colour="red")) == [("red", [4])]
    log.append_batch([entry(5, colour="blue")])
    assert dispatched(log) == [("blue", 5)]


def test_what_was_given_early_and_acknowledged_before_it_is_stored_leaves_nothing():
    log = log_of(one := consumer())
    entries = coming(1)
    log.dispatch_uncommitted(entries)
    log.remove_settled(entries)
    log.remove_consumer(one)
    log.on_committed(entries, (1,), (0,))
    log.note_appended()
    log.consumers.append(one)
    page(log, [2])
    assert dispatched(log) == [("c", 2)]


def test_nothing_is_kept_of_what_was_given_early_and_is_gone_where_other_nodes_write_too():
    log = log_of(consumer())
    for number in range(1, 100):
        entries = coming(1)
        log.shared = False
        assert log.dispatch_uncommitted(entries)
        log.shared = True  # a node joins while they are on their way
        log.remove_settled(entries)
        entries[0].message = entry(number).message
        log.consumers[0].credit += 1
        log.on_committed(entries, (number,), (0,))
    assert (log.depth, log.in_flight) == (0, 0)
    assert len(log.lookahead.in_flight_seqs) <= 1


def test_nothing_is_given_early_where_another_node_may_have_confirmed_what_is_older_and_not_told_of_it_yet():
    log = log_of(consumer())
    log.shared = True
    assert not log.dispatch_uncommitted(coming(1))


def test_what_follows_all_that_is_known_of_a_log_of_several_nodes_is_given_without_being_read_back():
    log = log_of(consumer())
    log.shared = True
    log.append_batch([entry(1), entry(2)], before=0)
    assert dispatched(log) == [("c", 1), ("c", 2)]
    log.append_batch([entry(5)], before=2)
    assert dispatched(log) == [("c", 5)]
    assert not log.needs_page


@pytest.mark.parametrize("before", [4, None])
def test_what_follows_a_message_of_another_node_is_read_from_the_store_behind_it(before):
    log = log_of(consumer())
    log.shared = True
    log.append_batch([entry(1)], before=0)
    log.append_batch([entry(5)], before)  # the other node has not told of 4 yet
    assert dispatched(log) == [("c", 1)]
    page(log, [4, 5])
    assert dispatched(log) == [("c", 4), ("c", 5)]


def test_what_was_given_early_and_is_gone_is_passed_over_by_what_was_read_before_it_was_removed():
    log = log_of(consumer())
    log.shared = True
    log.note_appended()
    log.paging = True
    entries = coming(1)
    log.uncommitted_bytes = 1
    log.depth += 1
    log.in_flight += 1
    log.remove_settled(entries)
    log.on_committed(entries, (2,), (0,))
    log.on_page_read([entry(1), entry(2)], log.generation)
    assert dispatched(log) == [("c", 1)]
    assert not log.lookahead.in_flight_seqs


# -- all of it at once


def number_of(each):
    """The number that an entry has, or will have."""
    return int(each.message.id.partition(":")[2])


def test_what_came_while_an_outdated_page_was_read_is_counted_once():
    log = log_of(depth=0)
    log.note_appended()
    log.consumers.append(consumer("gone", 1))
    log.dispatch()
    outdated, log.paging = log.generation, True
    log.remove_consumer(log.consumers[0])
    log.note_appended()
    log.on_page_read([entry(1)], outdated)
    log.consumers.append(consumer("there", 1))
    log.on_page_read([entry(1), entry(2)], log.generation)
    assert log.unloaded_count == 0


class LogUnderWork(RuleBasedStateMachine):
    """A log with a store behind it whose answers come late; clients come, ack, go; operators purge.

    Messages are given early where that may be; else when they are stored, in the order in which they were sent.
    Whatever happens: every message is in the store or settled, settled once, held by one consumer at most, and given to
    consumers in order; at the end all that is left can be consumed.
    """

    @initialize(suspect=st.integers(0, 3), prioritized=st.booleans())
    def start(self, suspect, prioritized):
        self.page_size = 3
        self.stored = dict.fromkeys(range(1, 6))
        self.last = 5  #: number of the last message that was sent
        self.coming: deque[tuple[list[int], list[LogEntry]]] = deque()  # to the store; what was given early of it
        self.acked_early: set[int] = set()
        self.log = log_of(depth=5, suspect=suspect)
        self.log.apply_policy(DispatchPolicy(prioritized=prioritized))
        self.held: dict[int, tuple[Subscription, LogEntry]] = {}
        self.settled: set[int] = set()
        self.delivered: set[int] = set()
        self.answer = None
        self.names = 0
        self.patch = pytest.MonkeyPatch()
        for size in ("PAGE_SIZE", "WINDOW_SIZE"):
            self.patch.setattr(dispatch_window, size, self.page_size)

    def settle(self, seq):
        assert seq not in self.settled, "settled twice"
        self.settled.add(seq)
        del self.stored[seq]

    def pump(self):
        log = self.log
        before = 0
        pairs = [(subscription, each) for subscription, entries in log.dispatch() for each in entries]
        pairs.sort(key=lambda pair: log.order_key(pair[1]))
        for subscription, given in pairs:
            assert given.seq in self.stored, "a ghost"
            assert given.seq not in self.held, "given to two"
            if log.groups is None and not any(c.selector for c in log.consumers):
                assert log.order_key(given) > before, "out of order"
                before = log.order_key(given)
                waiting = self.stored.keys() - self.held.keys() - {each.seq for _, each in pairs}
                assert all(log.order_key(self.made(seq)) > before for seq in waiting), "one before it waits"
            if given.seq in self.delivered:
                assert given.redelivery_count, "delivered before, and not flagged"
            self.delivered.add(given.seq)
            self.held[given.seq] = (subscription, given)
        after = log.loaded_up_to if log.needs_page else log.lookahead_position
        if after is not None:
            load = log.on_page_read if log.needs_page else partial(log.on_lookahead_read, after=after)
            log.paging = True
            self.answer = load, after, list(self.stored), log.generation

    @staticmethod
    def made(seq):
        group = {"JMSXGroupID": f"g{seq % 3}"} if seq % 5 < 2 else {}
        return entry(seq, colour="red" if seq % 2 else "blue", priority=str(seq % 3), **group)

    @rule(count=st.integers(1, 4))
    def messages_are_sent(self, count):
        numbers = [self.last + each for each in range(1, count + 1)]
        self.last += count
        entries = [self.made(seq) for seq in numbers]
        for each in entries:
            each.seq = UNCOMMITTED
        late = any(not given for _, given in self.coming)
        nothing_waits = not (self.stored.keys() - self.held.keys() or self.log.ownerless)
        given = [] if late else self.log.dispatch_uncommitted(entries)
        if given:
            assert nothing_waits, "it overtakes"
            assert sum(len(theirs) for _, theirs in given) == count
        for subscription, theirs in given:
            for each in theirs:
                self.held[number_of(each)] = subscription, each
                self.delivered.add(number_of(each))
        self.coming.append((numbers, entries if given else []))

    @precondition(lambda self: self.coming)
    @rule()
    def the_store_takes(self):
        numbers, given = self.coming.popleft()
        self.stored.update(dict.fromkeys(numbers))
        if self.answer is not None:  # what is asked is answered after what comes before the answer
            self.answer[2].extend(numbers)
        if given:
            self.log.on_committed(given, numbers, [0] * len(numbers))
            for seq in self.acked_early.intersection(numbers):
                self.settle(seq)
            back = [each for each in self.log.ownerless if each.seq != UNCOMMITTED]
            self.log.ownerless = [each for each in self.log.ownerless if each.seq == UNCOMMITTED]
            self.log.requeue(back)
        for seq in () if given else numbers:
            if self.log.consumers:
                self.log.append_batch([self.made(seq)])
            else:
                self.log.note_appended()
        self.pump()

    @precondition(lambda self: self.answer is not None)
    @rule()
    def the_store_answers(self):
        (load, after, stored, window), self.answer = self.answer, None
        found = sorted((self.made(seq) for seq in stored), key=self.log.order_key)
        load([each for each in found if self.log.order_key(each) > after][: self.page_size], window)
        self.pump()

    @rule(prefetch=st.integers(1, 4), selector=st.sampled_from([None, None, "colour = 'red'", "colour = 'blue'"]))
    def a_consumer_comes(self, prefetch, selector):
        self.names += 1
        self.log.consumers.append(consumer(str(self.names), prefetch, selector))
        self.pump()

    @precondition(lambda self: self.log.consumers)
    @rule(which=st.integers(0, 10))
    def a_consumer_goes(self, which):
        gone = self.log.consumers[which % len(self.log.consumers)]
        back = [given for subscription, given in self.held.values() if subscription is gone]
        for given in back:
            del self.held[number_of(given)]
        self.log.ownerless += [given for given in back if given.seq == UNCOMMITTED]
        self.log.requeue([given for given in back if given.seq != UNCOMMITTED])
        self.log.remove_consumer(gone)
        self.pump()

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10))
    def a_message_is_acked(self, which):
        seq = sorted(self.held)[which % len(self.held)]
        subscription, given = self.held.pop(seq)
        self.log.remove_settled([given])
        if given.seq == UNCOMMITTED:
            self.acked_early.add(seq)
        else:
            self.settle(seq)
        subscription.credit += 1
        self.pump()

    @rule(prioritized=st.booleans())
    def the_policy_changes(self, prioritized):
        self.log.apply_policy(DispatchPolicy(prioritized=prioritized))
        self.pump()

    @precondition(lambda self: self.answer is None)
    @rule()
    def an_operator_purges(self):
        for seq in self.log.remove_ready([self.made(seq) for seq in self.stored]):
            assert seq not in self.held
            self.settle(seq)
        assert set(self.stored) <= set(self.held)
        self.pump()

    @invariant()
    def the_numbers_are_true(self):
        log = self.log
        on_their_way = len(log.ownerless) + sum(each.seq == UNCOMMITTED for _, each in self.held.values())
        assert log.depth == len(self.stored) + on_their_way
        assert log.in_flight == len(self.held) + len(log.ownerless)
        assert log.uncommitted_bytes == sum(each.size for _, given in self.coming for each in given)
        waiting = [self.made(seq) for seq in self.stored.keys() - self.held.keys()]
        past = [each.seq for each in waiting if log.order_key(each) > log.loaded_up_to]
        assert log.unloaded_count == len(past)
        assert not any(map(log.lookahead.is_in_flight, past))
        held = self.held.keys() & self.stored.keys()
        assert all(log.lookahead.is_in_flight(seq) for seq in held if log.order_key(self.made(seq)) > log.loaded_up_to)
        assert log.ready_bytes == sum(each.size for each in log.ready)
        assert {each.seq for each in log.ready} == {each.seq for each in waiting} - set(past)
        assert sorted(log.ready, key=log.order_key) == list(log.ready)
        assert len(log.ready) == len({each.seq for each in log.ready}), "twice in the window"

    def teardown(self):
        if not hasattr(self, "log"):
            return
        with contextlib.closing(SimpleNamespace(close=self.patch.undo)):
            self.consume_all()

    def consume_all(self):
        while self.log.consumers:
            self.a_consumer_goes(0)
        while self.coming:
            self.the_store_takes()
        self.a_consumer_comes(2, None)
        for _ in range(10_000):
            if self.answer is not None:
                self.the_store_answers()
            elif self.held:
                self.a_message_is_acked(0)
            else:
                break
        assert not self.stored, "something cannot be consumed"


TestLogUnderWork = LogUnderWork.TestCase
TestLogUnderWork.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_what_was_given_out_leaves_its_mark_though_what_others_stored_and_did_not_tell_of_is_not_counted():
    log = log_of(consumer())
    for number in (7, 8):
        log.append_batch([entry(number)])
    given_out(log)
    log.depth = 0  # as where two others were acknowledged that nobody had told of
    assert closing_mark(log) == "0"
    log.shared = True
    assert closing_mark(log) == "8"
