"""Test the wording of counts, durations and lists on pages. Pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analytics.readers.message_trace import TraceEvent
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from console.access.roles import Permission, permission_message
from console.messages.journey.journey import (
    CopyLocation,
    Journey,
    JourneyStep,
    OperatorAction,
    build_journey,
)
from console.routing.definitions.changes import DefinitionChange
from console.routing.definitions.definition_values import change_rows

NOW, QUEUE = datetime(2026, 1, 1, tzinfo=UTC), Destination.queue("orders")


@pytest.mark.parametrize(
    ("states", "summary"),
    [
        (["processed"], "The message was processed."),
        (["processed"] * 3, "All 3 copies: processed."),
        (["processed", "processed", "waiting"], "3 copies: 1 stored, 2 processed."),
        (["processed", "processed", "failed", "dead"], "3 copies: 1 dead letter, 2 processed."),
        (["processed", "failed", "failed", "dead"], "3 copies: 1 dead letter, 1 processed, 1 failed."),
        (["failed", "dead"], "The message is a dead letter."),
        (["failed", "taken"], "The message was removed by an operator."),
        (["failed"], "The message failed."),
    ],
)
def test_the_outcome_of_a_message_is_one_sentence(states, summary):
    found = Journey("m", complete=True)
    found.steps = [JourneyStep(NOW, "enqueue", "Sent to")]
    found.copies = [CopyLocation(QUEUE, state, NOW) for state in states]
    assert found.summary == summary


def test_of_what_only_an_operator_told_of_it_is_not_said_that_nothing_kept_it():
    found = Journey("m", complete=True)
    found.steps = [JourneyStep(NOW, "deed", "Sent")]
    assert found.summary == "No trace events recorded yet."


def journey_of(*told: tuple[float, str, str]) -> Journey:
    """Steps at so many seconds from now, in order: kind and queue; an action is a resubmission from there."""
    found = Journey("m")
    for seconds, kind, name in told:
        action = OperatorAction(NOW, "ada", "Resubmitted", f"queue://{name}", leaves=True) if kind == "deed" else None
        found.steps.append(
            JourneyStep(NOW + timedelta(seconds=seconds), kind, "", Destination.queue(name), action=action)
        )
    return found


FAILED = (
    (-2.0, "enqueue", "orders"),
    (-1.9, "forward", "orders"),
    (-1.5, "dead_letter", "orders"),
    (-1.5, "forward", "DLQ"),
)


@pytest.mark.parametrize(
    ("told", "awaits_trace"),
    [
        ((*FAILED, (-1.0, "deed", "DLQ")), True),
        ((*FAILED, (-1.2, "forward", "orders"), (-1.0, "deed", "DLQ")), False),
        ((*FAILED, (-1.0, "deed", "DLQ"), (-0.9, "forward", "orders")), False),
        ((*FAILED, (-1.2, "drop", "DLQ"), (-1.0, "deed", "DLQ")), False),
        ((), False),
    ],
    ids=["failed just before", "one of a long step", "recorded later", "deleted", "nothing"],
)
def test_a_deed_is_awaited_until_the_trace_tells_what_it_left_and_not_by_what_was_before(told, awaits_trace):
    assert journey_of(*told).awaits_trace(NOW) is awaits_trace


def test_of_many_messages_done_together_the_first_was_recorded_seconds_before_the_deed_is_noted():
    told = [(-60.0, "forward", "DLQ"), (-6.0, "forward", "orders"), (-5.9, "ack", "orders"), (-1.0, "deed", "DLQ")]
    assert not journey_of(*told).awaits_trace(NOW)


def test_a_message_that_an_edit_made_where_the_old_one_was_is_not_awaited_when_it_was_recorded():
    found = journey_of((-1.1, "enqueue", "orders"), (-1.1, "forward", "orders"), (-1.0, "deed", "orders"))
    found.steps[-1] = replace(found.steps[-1], action=replace(found.steps[-1].action, old_id="old"))
    assert not found.awaits_trace(NOW)


def test_a_new_policy_is_shown_by_what_it_sets_and_a_changed_one_by_what_changes():
    new, other = PolicyEntry(QUEUE, prioritized_messages=True), PolicyEntry(QUEUE)
    assert [each.name for each in change_rows(DefinitionChange(None, new))] == ["prioritizedMessages"]
    assert [(each.was, each.now) for each in change_rows(DefinitionChange(new, other))] == [("true", "")]


def test_what_was_rolled_back_was_sent_and_is_nowhere():
    events = [TraceEvent(1, "rollback", "m", "queue://a", "queue://a", "c1", 6, 0, "ABORT", {})]
    found = build_journey("m", events, [], {}, complete=True)
    assert found.summary == "Sent in a transaction that was rolled back."
    assert [(step.label, step.detail) for step in found.steps] == [("Rolled back, sent to", "ABORT")]


def test_what_is_put_off_waits_and_what_was_moved_is_taken():
    def summary(*kinds: str) -> str:
        events = [
            TraceEvent(number, kind, "m", "queue://a", "queue://a", None, 6, 0, None, {})
            for number, kind in enumerate(kinds)
        ]
        return build_journey("m", events, [], {}, complete=True).summary

    assert summary("enqueue", "forward", "dispatch", "redeliver", "delay") == "The message is stored."
    assert summary("enqueue", "forward", "move") == "The message was removed by an operator."


@pytest.mark.parametrize(
    ("permission", "end"),
    [
        (Permission.BULK, "Granted to the roles operator and admin, and can be added to the role support."),
        (Permission.ROUTE, "Granted to the role admin, and can be added to the role operator."),
        (Permission.AUDIT, "Granted to the role admin."),
    ],
)
def test_who_lacks_a_right_is_told_every_way_to_have_it(permission, end):
    assert permission_message(permission).endswith(end)
