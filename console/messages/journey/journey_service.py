"""The journey of one message, put together from the trace, the record of what operators did, and the routing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.messages import trace_reader
from console.messages.jobs.job_service import LEAVING
from console.messages.jobs.models import JobOutcome, Replacement
from console.messages.journey.journey import Deed, Journey, journey
from console.routing.definitions.changes import definitions_by_id
from console.routing.definitions.visibility import visible_definitions

#: What was done by jobs, in words, and whether the message left its queue by it.
DEEDS = {"copy": ("Copied", False)} | {action: (words.capitalize(), True) for action, words in LEAVING.items()}

#: What was done to a message that was made by editing another one.
MADE = "Made from another message"


def journey_of(id: str, sees: Sees = everything) -> Journey:
    """All that is known of it, wherever it was: who asks may not know of all those places (see Journey.seen_by).

    Of definitions, those that `sees` lets one know of are named.
    """
    seen = trace_reader.events_of([id])
    rules: dict[str, str] = {}
    sent = next((each for each in seen.events if each.kind == "enqueue"), None)
    if sent is not None:
        rules = _rules(sent.destination, sent.properties, sees)
    return journey(id, seen.events, deeds_of([id])[id], rules, seen.complete)


def _rules(sent_to: str, headers: dict[str, str], sees: Sees) -> dict[str, str]:
    """By place, the definition in force that copies there what is sent so."""
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


def deeds_of(ids: Collection[str]) -> dict[str, list[Deed]]:
    """What operators did to each of these messages."""
    found: dict[str, list[Deed]] = defaultdict(list)
    done = JobOutcome.objects.filter(message_id__in=ids, outcome=JobOutcome.Outcome.DONE)
    for row in done.select_related("job"):
        words, leaves = DEEDS[row.job.action]
        found[row.message_id].append(
            Deed(row.time, row.job.asked_by, words, row.job.queue, row.detail, row.job.reason,
                 str(row.job.id), leaves and not row.job.leaves_no_trace, row.new_id)
        )  # fmt: skip
    for row in JobOutcome.objects.filter(new_id__in=ids).select_related("job"):
        found[row.new_id].append(
            Deed(row.time, row.job.asked_by, MADE, row.job.queue, row.detail, row.job.reason, str(row.job.id),
                 old_id=row.message_id)
        )  # fmt: skip
    for each in Replacement.objects.filter(message_id__in=ids):
        found[each.message_id].append(
            Deed(each.time, each.edited_by, "Edited and sent anew", each.queue, each.places, each.reason,
                 leaves=True, new_id=each.new_id)
        )  # fmt: skip
    for each in Replacement.objects.filter(new_id__in=ids):
        found[each.new_id].append(
            Deed(each.time, each.edited_by, MADE, each.queue, each.places, each.reason,
                 old_id=each.message_id)
        )  # fmt: skip
    return found
