"""Stats: which destinations changed, which are gone, and for how long that is told."""

from brokerapp.destination import Destination
from brokerapp.stats import GONE_TOLD_FOR, Stats

A, B = Destination.queue("a"), Destination.queue("b")


def test_what_is_gone_is_told_for_a_while_and_then_no_more():
    stats = Stats()
    for each in (A, B):
        stats.of(each)
        stats.forget(each)
    _, gone = stats.take_changes()
    assert set(gone) == {A, B}
    stats.told_gone([A], 1)
    stats.told_gone([B], 2)
    assert stats.long_gone(GONE_TOLD_FOR) == []
    assert stats.long_gone(GONE_TOLD_FOR + 1) == [A]
    assert stats.long_gone(GONE_TOLD_FOR + 2) == [A, B]
    stats.forget_gone([A])
    assert stats.long_gone(GONE_TOLD_FOR + 2) == [B]


def test_what_came_back_is_not_forgotten():
    stats = Stats()
    stats.told_gone([A], 1)
    stats.of(A)
    stats.told_gone([A], 2)
    assert stats.long_gone(10 * GONE_TOLD_FOR) == []
