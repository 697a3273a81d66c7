"""Loads the journey of a message from the trace, the recorded jobs and edits, and the active routing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.messages import trace_reader
from console.messages.jobs.job_service import REMOVING
from console.messages.jobs.models import JobOutcome, Replacement
from console.messages.journey.journey import Journey, OperatorAction, build_journey
from console.routing.definitions.changes import definitions_by_id
from console.routing.definitions.visibility import visible_definitions

#: Labels of job actions, and whether the message leaves its queue.
ACTION_LABELS = {"copy": ("Copied", False)} | {action: (words.capitalize(), True) for action, words in REMOVING.items()}

#: Label of the creation of a message by an edit.
CREATED_BY_EDIT = "Created by editing another message"


def journey_of(id: str, sees: Sees = everything) -> Journey:
    """Load the whole journey, hidden destinations included (see Journey.visible_to).

    Only definitions that `sees` makes visible are named.
    """
    seen = trace_reader.events_of([id])
    rules: dict[str, str] = {}
    sent = next((each for each in seen.events if each.kind == "enqueue"), None)
    if sent is not None:
        rules = _rules(sent.destination, sent.properties, sees)
    return build_journey(id, seen.events, operator_actions([id])[id], rules, seen.complete)


def _rules(sent_to: str, headers: dict[str, str], sees: Sees) -> dict[str, str]:
    """Return by target the active definition that routes such a message there."""
    try:
        [route] = gateway().routes([(Destination.parse(sent_to), headers)])
        told = (
            None if sees is everything else set(definitions_by_id(visible_definitions(gateway().definitions(), sees)))
        )
    except BrokerError:
        return {}
    hops = [hop for hop in route.get("hops", ()) if hop[1] and hop[4]]
    hops = [hop for hop in hops if told is None or hop[1].partition("|")[0] in told]
    rules = ((target, rule.partition("|")[0].replace(":", " ", 1), selector) for _, rule, target, selector, _ in hops)
    return {target: f"{rule}, because {selector}" if selector else rule for target, rule, selector in rules}


def operator_actions(ids: Collection[str]) -> dict[str, list[OperatorAction]]:
    """Return the operator actions on each of these messages."""
    found: dict[str, list[OperatorAction]] = defaultdict(list)
    done = JobOutcome.objects.filter(message_id__in=ids, outcome=JobOutcome.Outcome.DONE)
    for row in done.select_related("job"):
        words, leaves = ACTION_LABELS[row.job.action]
        found[row.message_id].append(
            OperatorAction(row.time, row.job.asked_by, words, row.job.queue, row.detail, row.job.reason,
                 str(row.job.id), leaves and not row.job.leaves_no_trace, row.new_id)
        )  # fmt: skip
    for row in JobOutcome.objects.filter(new_id__in=ids).select_related("job"):
        found[row.new_id].append(
            OperatorAction(
                row.time, row.job.asked_by, CREATED_BY_EDIT, row.job.queue, row.detail, row.job.reason,
                str(row.job.id), old_id=row.message_id,
            )
        )  # fmt: skip
    for each in Replacement.objects.filter(message_id__in=ids):
        found[each.message_id].append(
            OperatorAction(each.time, each.edited_by, "Edited and resubmitted", each.queue, each.places, each.reason,
                 leaves=True, new_id=each.new_id)
        )  # fmt: skip
    for each in Replacement.objects.filter(new_id__in=ids):
        found[each.new_id].append(
            OperatorAction(each.time, each.edited_by, CREATED_BY_EDIT, each.queue, each.places, each.reason,
                 old_id=each.message_id)
        )  # fmt: skip
    return found
