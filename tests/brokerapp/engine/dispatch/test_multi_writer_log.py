"""Test a log that other nodes write to: each message is dispatched once, whatever arrives in which order."""

import contextlib
from collections import deque
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from brokerapp.engine.dispatch import dispatch_window, multi_writer_window
from brokerapp.engine.dispatch.dispatch_window import WINDOW_SIZE
from tests.brokerapp.engine.dispatch.test_message_log import coming, consumer, dispatched, entry, log_of, page


def shared(*consumers):
    """A log that other nodes write to, of which all is read."""
    log = log_of(*consumers)
    log.shared = True
    return log


def numbers(log):
    """What is given out now."""
    return [number for _, number in dispatched(log)]


def test_what_another_node_tells_of_is_given_without_being_read_back_where_nothing_stands_before_it():
    log = shared(consumer())
    log.append_late([entry(1), entry(2)], 0)
    log.append_batch([entry(3)], 2)
    log.append_late([entry(4)], 3)
    assert numbers(log) == [1, 2, 3, 4]
    assert not log.needs_page


@pytest.mark.parametrize("before", [2, None])
def test_what_a_node_tells_of_waits_for_what_a_third_one_stored_before_it(before):
    log = shared(consumer())
    log.append_late([entry(1)], 0)
    log.append_late([entry(3)], before)
    assert numbers(log) == [1]
    page(log, [2, 3])
    assert numbers(log) == [2, 3]
    log.note_appended(1, 2)  # the third node tells, too late
    assert (log.depth, log.needs_page) == (3, False)
    log.append_late([entry(4)], 3)
    assert numbers(log) == [4]


def test_what_was_read_before_a_node_told_of_it_is_not_given_again_though_it_is_gone_and_the_window_forgotten():
    log = shared(consumer())
    log.note_appended(1, 2)
    page(log, [1, 2])
    log.remove_settled([each for _, entries in log.dispatch() for each in entries])
    [former] = log.consumers
    log.remove_consumer(former)
    log.consumers.append(consumer("later"))
    log.append_late([entry(1)], 0)
    assert numbers(log) == []


@pytest.mark.parametrize("selector", [None, "colour IS NULL"])
def test_a_log_is_neither_read_nor_given_out_before_this_node_has_taken_it_over(selector):
    log = shared(consumer(selector=selector))  # of another node, as that has told already
    log.is_remote = True
    log.note_appended(3, 3)
    assert (log.needs_page, log.lookahead_position) == (False, None)
    page(log, [1, 2, 3])
    assert numbers(log) == []
    log.is_remote = False
    log.take_over(3, 0, {}, held=(1,), last=3)
    page(log, [1, 2, 3])
    assert numbers(log) == [2, 3]


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_former_home_gave_out_is_neither_given_nor_counted_where_its_node_tells_of_it_late(whole):
    log = shared(consumer())
    log.take_over(1, 0, {}, (), last=6)  # of 5 and 6, 5 was acknowledged
    if whole:
        log.append_late([entry(5)], 0)
        log.append_late([entry(6)], 5)
    else:
        log.note_appended(2, 6)
    page(log, [6])
    page(log, [])
    assert (numbers(log), log.depth, log.unloaded_count) == ([6], 1, 0)
    log.append_late([entry(7)], 6)
    assert (numbers(log), log.depth) == ([7], 2)


def test_what_an_operator_took_out_before_a_node_told_of_it_is_not_given():
    log = shared(consumer())
    log.remove_ready([entry(1)])
    log.unloaded_count = 0  # as where as many others were counted that are gone
    log.append_late([entry(1)], 0)
    assert numbers(log) == []


def test_nor_where_something_older_was_offered_meanwhile():
    log = shared(consumer())
    log.remove_ready([entry(2)])
    log.unloaded_count = 0
    log.append_batch([entry(1)], 0)
    log.append_late([entry(2)], 1)
    assert numbers(log) == [1]


def test_a_log_leaves_reading_when_it_has_read_what_came_meanwhile():
    log = shared(consumer())
    log.note_appended(1, 1)
    log.paging, reading = True, log.generation
    log.append_late([entry(2)], 1)  # while a page is read which holds it
    log.on_page_read([entry(1), entry(2), entry(3)], reading)
    assert not log.unloaded_count
    log.note_appended(1, 3)  # which was read already
    log.append_late([entry(4)], 3)
    assert numbers(log) == [1, 2, 3, 4]


def test_what_is_at_hand_behind_what_has_to_be_read_joins_the_page_that_reaches_it():
    log = shared(consumer(prefetch=100))
    log.note_appended(2, 2)
    log.append_batch([entry(3)], 2)
    log.append_late([entry(5), entry(6)], 3)  # 4 went elsewhere
    log.append_batch([entry(7)], 6)
    page(log, [1, 2])
    assert numbers(log) == [1, 2, 3, 5, 6, 7]
    assert (log.unloaded_count, log.needs_page) == (0, False)


@pytest.mark.parametrize("unknown", [3, None])
def test_what_is_at_hand_behind_a_gap_waits_for_the_page_that_closes_it(unknown):
    log = shared(consumer(prefetch=100))
    log.note_appended(1, 1)
    log.append_batch([entry(2)], 1)
    log.append_late([entry(4)], unknown)  # of 3 nobody has told
    page(log, [1])
    assert numbers(log) == ([1] if unknown else [1, 2])
    assert log.needs_page
    page(log, [1, 2, 3] if unknown else [1, 2, 3, 4])
    assert numbers(log) == ([2, 3, 4] if unknown else [3, 4])


@pytest.mark.parametrize("end", ["taken out", "looked ahead", "forgotten", "elsewhere", "too much"])
def test_what_is_at_hand_is_not_given_when_it_may_be_gone_or_would_take_too_much_memory(end, monkeypatch):
    if end == "too much":
        monkeypatch.setattr(multi_writer_window, "WINDOW_BYTES", 150)
    log = shared(consumer(selector="colour = 'red'"))
    log.note_appended(1, 1)
    log.append_late([entry(2, colour="red"), entry(3, colour="red")], 1)
    if end == "taken out":
        log.remove_ready([entry(2), entry(3)])
    elif end == "looked ahead":
        log.on_lookahead_read([entry(1), entry(2, colour="red"), entry(3, colour="red")], log.generation, 0)
        log.remove_settled([each for _, entries in log.dispatch() for each in entries])
    elif end == "forgotten":
        [former] = log.consumers
        log.remove_consumer(former)
        log.consumers.append(former)
    elif end == "elsewhere":  # another node gave it out meanwhile
        consumers = list(log.consumers)
        log.release_ownership()
        log.consumers.extend(consumers)
        log.take_over(1, 0, {}, (), last=3)
    log.consumers.append(consumer("any"))
    page(log, [1])
    assert numbers(log) == [1]


def test_what_came_meanwhile_and_stands_behind_the_page_is_read_next():
    log = shared(consumer())
    log.note_appended(1, 1)
    log.paging, reading = True, log.generation
    log.note_appended(1, 3)
    log.on_page_read([entry(1), entry(2)], reading)  # of a third node, that has not told of it
    assert log.needs_page
    page(log, [1, 2, 3])
    assert numbers(log) == [1, 2, 3]


def test_what_is_known_is_read_though_as_many_of_which_nobody_told_stand_before_it():
    log = shared(consumer())
    log.note_appended(2, 4)
    page(log, [1, 2])  # a page ends there
    assert log.needs_page


def test_with_selectors_what_another_node_tells_of_goes_to_who_wants_it():
    log = shared(consumer("red", selector="colour = 'red'"), consumer("blue", selector="colour = 'blue'"))
    log.append_late([entry(1, colour="red"), entry(2, colour="blue")], 0)
    log.append_batch([entry(3, colour="red")], 2)
    assert dispatched(log) == [("red", 1), ("blue", 2), ("red", 3)]


def test_with_selectors_what_waits_past_the_window_is_found_by_reading_and_not_given_again_when_it_is_told(monkeypatch):
    monkeypatch.setattr(dispatch_window, "WINDOW_SIZE", 1)
    log = shared(consumer("red", selector="colour = 'red'"))
    log.append_late([entry(1, colour="blue")], 0)
    log.append_batch([entry(2, colour="blue")], 1)  # the window is full
    assert (numbers(log), log.lookahead_position) == ([], 1)
    log.paging = True
    log.on_lookahead_read([entry(2, colour="blue"), entry(3, colour="red")], log.generation, 1)
    assert numbers(log) == [3]
    log.append_late([entry(3, colour="red")], 2)
    assert numbers(log) == []


def test_groups_stay_with_their_consumers_whichever_node_their_messages_come_to():
    log = shared(consumer("a"), consumer("b"))
    first, second = (partial(entry, JMSXGroupID=group) for group in ("g", "h"))
    log.append_late([first(1)], 0)
    log.append_batch([second(2)], 1)
    owners = dict(number_first(dispatched(log)))
    log.append_late([second(3), first(4)], 2)
    log.append_batch([first(5)], 4)
    assert {owners[1], owners[2]} == {"a", "b"}
    assert dispatched(log) == [(owners[2], 3), (owners[1], 4), (owners[1], 5)]


def number_first(pairs):
    return [(number, name) for name, number in pairs]


def test_two_units_of_one_batch_follow_each_other_though_the_store_says_of_both_what_stood_before_the_batch():
    log = shared(consumer())
    log.append_batch([entry(1)], 0)
    for unit in ([entry(2), entry(3)], [entry(5)]):  # 4 went elsewhere
        log.append_batch(unit, 1)
    assert numbers(log) == [1, 2, 3, 5]


def test_two_units_of_one_batch_are_both_read_where_the_first_stands_behind_what_another_node_stored():
    log = shared(consumer())
    for unit in ([entry(2)], [entry(3)]):
        log.append_batch(unit, 1)
    assert numbers(log) == []
    page(log, [1, 2, 3])
    assert numbers(log) == [1, 2, 3]


def test_what_was_given_early_before_a_second_node_joined_is_passed_over_when_what_follows_it_is_read():
    log = log_of(consumer())
    early = coming(1, 2)
    assert log.dispatch_uncommitted(early)
    log.shared = True  # while they are on their way
    log.on_committed(early, (1, 2), (0, 0))
    log.append_batch([entry(3)], 2)  # the store says that 2 stood before it, which was never read
    assert numbers(log) == []
    page(log, [1, 2, 3])
    assert numbers(log) == [3]
    log.append_late([entry(4)], 3)
    assert numbers(log) == [4]


def test_messages_are_wanted_whole_by_who_gives_them_out_and_not_where_they_would_only_wait():
    log = shared()
    assert not log.has_active_consumers
    log.consumers.append(consumer())
    assert log.has_active_consumers
    log.paused = True
    assert not log.has_active_consumers
    log.paused = False
    assert log.has_active_consumers
    log.note_appended(WINDOW_SIZE + 1, WINDOW_SIZE + 1)
    assert not log.has_active_consumers


class SharedLogUnderWork(RuleBasedStateMachine):
    """Three nodes write, one of them the home; each of the others tells of it later, in its order."""

    @initialize(choosy=st.booleans())
    def begin(self, choosy):
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(dispatch_window, "WINDOW_SIZE", 4)
        self.patch.setattr(multi_writer_window, "WINDOW_SIZE", 6)
        self.patch.setattr(dispatch_window, "PAGE_SIZE", 3)
        self.choosy, self.log = choosy, shared()
        self.stored, self.last, self.names = [], 0, 0
        self.untold = {"a": deque(), "c": deque()}
        self.held, self.given, self.settled = {}, set(), set()
        self.question = self.answer = None

    def made(self, number):
        return entry(number, colour="red" if number % 2 else "blue")

    def pump(self):
        log = self.log
        for subscription, entries in log.dispatch():
            for each in entries:
                assert each.seq in self.stored, "a ghost"
                assert each.seq not in self.held, "given to two"
                assert each.redelivery_count or each.seq not in self.given, "given again, and not flagged"
                if not self.choosy and not each.redelivery_count:
                    assert each.seq > max(self.given, default=0), "out of order"
                self.held[each.seq] = subscription, each
        self.given.update(self.held)
        after = log.loaded_up_to if log.needs_page else log.lookahead_position
        if after is not None:
            load = log.on_page_read if log.needs_page else partial(log.on_lookahead_read, after=after)
            log.paging, self.question = True, (load, after, log.generation)

    def store(self, count):
        before, numbers = self.stored[-1] if self.stored else 0, range(self.last + 1, self.last + count + 1)
        self.last += count
        self.stored += numbers
        return [self.made(number) for number in numbers], before

    @precondition(lambda self: self.answer is None)  # the home's commits and reads take turns
    @rule(count=st.integers(1, 3), asked=st.booleans())
    def the_home_stores(self, count, asked):
        asked = asked or self.log.has_active_consumers
        entries, before = self.store(count)
        self.log.append_batch(entries, before if asked else None)
        self.pump()

    @rule(node=st.sampled_from("ac"), count=st.integers(1, 3), asked=st.booleans())
    def another_node_stores(self, node, count, asked):
        entries, before = self.store(count)
        self.untold[node].append((entries, before if asked else None))

    @rule(node=st.sampled_from("ac"), words=st.integers(1, 2), whole=st.booleans())
    def it_tells(self, node, words, whole):
        runs = [self.untold[node].popleft() for _ in range(min(words, len(self.untold[node])))]
        if runs and whole and self.log.has_active_consumers:
            for entries, before in runs:
                self.log.append_late(entries, before)
        elif runs:
            self.log.note_appended(sum(len(entries) for entries, _ in runs), runs[-1][0][-1].seq)
        self.pump()

    @precondition(lambda self: self.question is not None)
    @rule()
    def the_store_is_read(self):
        (load, after, reading), self.question = self.question, None
        self.answer = load, [each for each in self.stored if each > after][:3], reading

    @precondition(lambda self: self.answer is not None)
    @rule()
    def the_answer_comes(self):
        (load, found, reading), self.answer = self.answer, None
        load(map(self.made, found), reading)
        self.pump()

    @rule(prefetch=st.integers(1, 4), colour=st.sampled_from(["red", "blue", None]))
    def a_consumer_comes(self, prefetch, colour):
        self.names += 1
        selector = f"colour = '{colour}'" if self.choosy and colour else None
        self.log.consumers.append(consumer(str(self.names), prefetch, selector))
        self.pump()

    @precondition(lambda self: self.log.consumers)
    @rule(which=st.integers(0, 10))
    def a_consumer_goes(self, which):
        gone = self.log.consumers[which % len(self.log.consumers)]
        back = [each for subscription, each in self.held.values() if subscription is gone]
        for each in back:
            del self.held[each.seq]
        self.log.requeue(back)
        self.log.remove_consumer(gone)
        self.pump()

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10))
    def a_message_is_acked(self, which):
        number = sorted(self.held)[which % len(self.held)]
        subscription, each = self.held.pop(number)
        self.log.remove_settled([each])
        self.stored.remove(number)
        subscription.credit += 1
        self.pump()

    @precondition(lambda self: self.answer is None)
    @rule()
    def an_operator_purges(self):
        for number in self.log.remove_ready(list(map(self.made, self.stored))):
            assert number not in self.held
            self.stored.remove(number)
        self.pump()

    @rule()
    def a_link_is_back(self):
        self.log.recheck_store()
        self.pump()

    def teardown(self):
        if not hasattr(self, "log"):
            return
        with contextlib.closing(SimpleNamespace(close=self.patch.undo)):
            for node, untold in self.untold.items():
                self.it_tells(node, len(untold), False)
            self.a_consumer_comes(2, None)
            for _ in range(10_000):
                if self.answer is not None:
                    self.the_answer_comes()
                elif self.question is not None:
                    self.the_store_is_read()
                elif self.held:
                    self.a_message_is_acked(0)
                else:
                    break
            assert not self.stored, "something cannot be consumed"
            assert self.log.depth == 0


TestSharedLogUnderWork = SharedLogUnderWork.TestCase
TestSharedLogUnderWork.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
