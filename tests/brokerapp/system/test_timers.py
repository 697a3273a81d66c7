"""Test timers: order, cancellation and repetition."""

from brokerapp.system.timers import Timers


def test_what_is_due_is_done_in_order_of_time_then_of_making():
    timers, done = Timers(), []
    for due, name in ((20, "c"), (10, "a"), (10, "b"), (30, "later")):
        timers.at(due, lambda name=name: done.append(name))
    timers.run(20)
    assert done == ["a", "b", "c"]
    assert timers.next_ms == 30


def test_a_cancelled_timer_does_nothing_and_is_waited_for_by_nobody():
    timers, done = Timers(), []
    timers.at(10, lambda: done.append(1)).cancel()
    assert timers.next_ms is None
    timers.run(10)
    assert done == []


def test_periodic_work_comes_again_a_period_after_it_was_done():
    timers, done = Timers(), []
    timers.call_every(100, lambda: done.append(timers.next_ms), now_ms=1000)
    for now in (1050, 1100, 1150, 1230, 1330):
        timers.run(now)
    assert done == [1200, 1330, 1430]


def test_only_a_timer_that_comes_before_all_others_moves_the_next_time():
    timers, moves = Timers(), []
    timers.moved = lambda: moves.append(timers.next_ms)
    for due in (50, 60, 40):
        timers.at(due, lambda: None)
    assert moves == [50, 40]


def test_cancelled_timers_do_not_pile_up_until_they_are_due():
    timers, done = Timers(), []
    timers.at(50, lambda: done.append("kept"))
    for number in range(10_000):
        timers.at(1_000_000 + number, lambda: done.append("cancelled")).cancel()
    assert len(timers._heap) < 500
    timers.run(2_000_000)
    assert done == ["kept"]
