"""Test the counters of destinations: which changed, which were deleted, and how long that is reported."""

from brokerapp.core.dispatch import counters as module
from brokerapp.core.dispatch.counters import REMOVALS_KEPT_FOR, DestinationCounters
from brokerapp.model.destination import Destination

A, B = Destination.queue("a"), Destination.queue("b")


def test_what_is_gone_is_told_for_a_while_and_then_no_more():
    stats = DestinationCounters()
    for each in (A, B):
        stats.of(each)
        stats.remove(each)
    _, gone = stats.take_changes()
    assert set(gone) == {A, B}
    stats.note_removals_published([A], 1)
    stats.note_removals_published([B], 2)
    assert stats.removals_published_before(REMOVALS_KEPT_FOR) == []
    assert stats.removals_published_before(REMOVALS_KEPT_FOR + 1) == [A]
    assert stats.removals_published_before(REMOVALS_KEPT_FOR + 2) == [A, B]
    stats.forget_removals([A])
    assert stats.removals_published_before(REMOVALS_KEPT_FOR + 2) == [B]


def test_what_came_back_is_not_forgotten():
    stats = DestinationCounters()
    stats.note_removals_published([A], 1)
    stats.of(A)
    stats.note_removals_published([A], 2)
    assert stats.removals_published_before(10 * REMOVALS_KEPT_FOR) == []


def test_of_very_many_that_changed_those_told_of_longest_ago_come_first(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHANGES", 2)
    stats = DestinationCounters()
    all_of_them = [stats.of(Destination.queue(str(number))) for number in range(5)]
    assert len(stats.take_changes()[0]) == 5, "what is new is told at once"
    for version, each in enumerate(all_of_them, 1):
        each.version = version
    stats.changed.update(all_of_them)
    told = []
    for version in range(10, 13):
        changed, _ = stats.take_changes()
        for each in changed:
            each.version = version
        told.append({each.destination.name for each in changed})
        stats.changed.add(all_of_them[0])
    assert told == [{"0", "1"}, {"2", "3"}, {"4", "0"}]
