"""What work on messages would touch, looked at before it is done: by who asks for it, and by who approves it."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.errors import RequestRefused
from brokerapp.snapshot import BrowsedMessage
from console import trace
from console.gateway import gateway
from console.live.mirror import mirror
from console.repair.blast import MAX_ROUTED, Radius, radius
from console.repair.jobs import Wish
from console.repair.models import Job

Action = Job.Action


@dataclass(frozen=True, slots=True)
class Chosen:
    """The messages somebody chose: a few to look at, and how many there are."""

    sample: list[BrowsedMessage]
    count: int
    at_least: bool = False  #: whether there may be more


def chosen_by(wish: Wish) -> Chosen:
    """What was chosen, as far as a page needs it."""
    door, sample = gateway(), []
    if wish.seqs:
        for seq in wish.seqs[:MAX_ROUTED]:
            sample += door.message(wish.queue, seq).messages
        return Chosen(sample, len(wish.seqs))
    try:
        page = door.browse(wish.queue, 0, MAX_ROUTED, wish.selector or None)
    except RequestRefused:  # a selector that is none
        return Chosen([], 0)
    count = door.depth(wish.queue) if not wish.selector else len(page.messages)
    return Chosen(page.messages, count, bool(wish.selector) and page.next is not None)


def radius_of(wish: Wish, chosen: Chosen) -> Radius | None:
    """Where they would go; None where that is not asked, or nowhere is named yet."""
    if wish.action == Action.REMOVE or (wish.action != Action.RETRY and wish.target is None):
        return None
    stats = mirror().current().stats
    return radius(chosen.sample, chosen.count, wish.queue, wish.target, gateway().routes, trace.processed, stats.get)


def radius_of_job(job: Job) -> Radius | None:
    """Where the messages of a job would go, as far as they are still there."""
    seqs = tuple(job.outcomes.values_list("seq", flat=True)[:MAX_ROUTED]) if job.is_selection else ()
    wish = Wish(job.action, job.source, job.goal, seqs, job.selector)
    return radius_of(wish, chosen_by(wish))
