"""Words of pages that say what is meant, and no more: pure."""

from datetime import UTC, datetime

import pytest

from brokerapp.definitions import PolicyEntry
from brokerapp.destination import Destination
from console.journey import Copy, Journey, Step
from console.rights import Verb, lacking
from console.routing.changes import Change
from console.routing.facts import rows_of

NOW, QUEUE = datetime(2026, 1, 1, tzinfo=UTC), Destination.queue("orders")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["processed"], "It was processed."),
        (["processed"] * 3, "Each of its 3 copies was processed."),
        (["processed", "processed", "waiting"], "It has 3 copies: 1 waiting, 2 processed."),
    ],
)
def test_the_fate_of_a_message_is_a_sentence(states, words):
    found = Journey("m", complete=True)
    found.steps = [Step(NOW, "enqueue", "Sent to")]
    found.copies = [Copy(QUEUE, state, NOW) for state in states]
    assert found.fate == words


def test_of_what_only_an_operator_told_of_it_is_not_said_that_nothing_kept_it():
    found = Journey("m", complete=True)
    found.steps = [Step(NOW, "deed", "Sent")]
    assert found.fate == "What became of it is not recorded, or not yet."


def test_a_new_policy_is_shown_by_what_it_sets_and_a_changed_one_by_what_changes():
    new, other = PolicyEntry(QUEUE, prioritized_messages=True), PolicyEntry(QUEUE)
    assert [each.name for each in rows_of(Change(None, new))] == ["prioritizedMessages"]
    assert [(each.was, each.now) for each in rows_of(Change(new, other))] == [("true", "")]


@pytest.mark.parametrize(
    ("verb", "end"),
    [
        (Verb.BULK, "comes with the roles operator and admin, and can be added to the role support."),
        (Verb.ROUTE, "comes with the role admin, and can be added to the role operator."),
        (Verb.AUDIT, "comes with the role admin."),
    ],
)
def test_who_lacks_a_right_is_told_every_way_to_have_it(verb, end):
    assert lacking(verb).endswith(end)
