"""Asking for work on messages, and control of it, on a page or through the API: with rights, and in the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, MatchCount
from brokerapp.selectors import compile_selector
from console.access.masking import check_selector, mask_headers_of, mask_message
from console.access.permissions import Verb, has_permission, is_restricted, require, visible
from console.access.roles import everything
from console.audit import trail
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.messages import trace_reader
from console.messages.jobs import job_service
from console.messages.jobs.impact import MAX_ROUTED, Radius, Way, radius
from console.messages.jobs.models import Job
from console.messages.jobs.preview import Preview, headers_of, preview, way_of
from console.messages.jobs.spec import FEW, NEEDS_FOR_FEW, Wish
from console.messages.jobs.worker import work

Action = Job.Action


@dataclass(frozen=True, slots=True)
class Chosen:
    """The messages somebody chose: a few to look at, and how many there are."""

    sample: list[BrowsedMessage]
    tally: MatchCount
    upto: int = 0  #: number of the newest message of the queue when they were counted

    @property
    def count(self) -> int:
        """How many there are at least."""
        return self.tally.count


def check(request: HttpRequest, wish: Wish) -> None:
    """Whether it may be asked for: neither a selector nor an edit must tell what its user may not see."""
    _require_sight(request, wish.action, wish.queue)
    if wish.selector:
        check_selector(request.user, compile_selector(wish.selector), wish.queue)


def _require_sight(request: HttpRequest, action: str, queue: Destination) -> None:
    """Whoever edits messages reads them: masking goes by where a message is and was, and an edited one begins anew."""
    if action == Action.EDIT:
        require(request, Verb.READ, queue)


def at_once(request: HttpRequest, wish: Wish) -> bool:
    """Whether it may be done at once. What is allowed for a few may be asked for beyond; anything else is denied."""
    lacked = [verb for verb in wish.verbs if not has_permission(request.user, verb, wish.queue)]
    enough = NEEDS_FOR_FEW.get(wish.action)
    if lacked and enough is not None:
        require(request, enough, wish.queue)
        return False
    for verb in wish.verbs:
        require(request, verb, wish.queue)
    return True


def ask(request: HttpRequest, wish: Wish) -> Job:
    """Have it done: a few messages now, more by a worker, and what is above one's limit when it is approved."""
    is_allowed = at_once(request, wish)
    some = is_allowed and is_restricted(request.user) and visible(request.user, wish.verb) is not everything
    if some and wish.returns and not 0 < len(wish.seqs) <= job_service.MAX_LOOKED_AT:
        raise RequestRefused(
            f"a token for some destinations sends at most {job_service.MAX_LOOKED_AT} messages again, by their numbers:"
            " where others return to is not known before"
        )
    if is_allowed:
        for target in job_service.targets(wish):
            for verb in wish.verbs:
                require(request, verb, target)
        check_ways(blast_radius(request, wish, chosen(wish)) if wish.action == Action.RETRY else None)
    about: dict[str, Any] = {
        "target": str(wish.target or ""), "selector": wish.selector, "messages": list(wish.seqs)[:100],
    }  # fmt: skip
    if wish.edit is not None:
        about["edit"] = "; ".join(f"{name}: {value}" for name, value in wish.edit.told())
    with trail.recording(request, wish.action, wish.queue, before=about) as change:
        is_few = is_allowed and 0 < len(wish.seqs) <= FEW
        job = job_service.start(wish, request.user.get_username(), needs_approval=not is_allowed, call=not is_few)
        if is_few:  # nobody waits for a worker to have a few messages dealt with
            work(str(job.id))
            job.refresh_from_db()
        change.after = {"job": str(job.id), "state": job.state, "done": job.done, "reason": wish.reason}
        if job.state == Job.State.ASKED:
            change.outcome = AuditEntry.Outcome.ASKED
    return job


def chosen(wish: Wish) -> Chosen:
    """What was chosen, as far as somebody needs to see it before. A selector that is none chooses nothing."""
    door = gateway()
    if wish.seqs:
        return Chosen(_one_by_one(wish), MatchCount(len(wish.seqs)))
    upto = door.last(wish.queue)
    try:
        page = door.browse(wish.queue, 0, MAX_ROUTED, wish.selector or None)
    except RequestRefused:
        return Chosen([], MatchCount(0))
    return Chosen(page.messages, door.count(wish.queue, wish.selector or None, page), upto)


def blast_radius(request: HttpRequest, wish: Wish, found: Chosen) -> Radius | None:
    """Where the messages would come, as far as who asks may know; None: nowhere, or nobody said where."""
    if wish.action == Action.REMOVE or not (wish.returns or wish.target):
        return None
    ways = [way_of(message, wish) for message in found.sample]
    looked = _radius(request, wish.queue, found.sample, ways, found.count)
    if wish.returns and looked.looked_at < looked.of:
        looked.notes.append(
            f"Each message names where it goes: those beyond the first {looked.looked_at} may go elsewhere."
        )
    return looked


def radius_of_edited(
    request: HttpRequest, queue: Destination, message: BrowsedMessage, changed: OperatorMessage
) -> Radius:
    """Where `changed` would come if it were sent now in place of this message. Raises InvalidDestination."""
    ways = [(each, headers_of(changed)) for each in Destination.parse_list(changed.destination)]
    return _radius(request, queue, [message] * len(ways), ways, len(ways))


def _radius(
    request: HttpRequest, queue: Destination, found: Sequence[BrowsedMessage], ways: Sequence[Way], of: int
) -> Radius:
    return radius(
        found, ways, of, gateway().routes, trace_reader.processed, mirror().current().stats.get, visible(request.user),
        lambda message: mask_headers_of(request.user, message, queue),
    )  # fmt: skip


def preview_of(request: HttpRequest, wish: Wish, found: Chosen) -> Preview | None:
    """The first message before and after an edit, as far as who asks may see it; None: there is none."""
    if wish.edit is None or not found.sample:
        return None
    shown = mask_message(request.user, first := found.sample[0], wish.queue)
    return preview(first, wish, is_hidden=not shown.is_unmasked)


def check_ways(found: Radius | None) -> None:
    """Raise RequestRefused where messages would return to a queue that somebody paused: it would only hide them there.

    Who wants them there all the same moves them.
    """
    paused = [each for blast in (found.blasts if found else ()) for each in blast.reaches if each.is_paused]
    if paused:
        place = str(paused[0].destination) if paused[0].is_named else "a queue that you may not see"
        raise RequestRefused(f"{place} {paused[0].warning}: resume it first, or move the messages there")


def wish_of(job: Job) -> Wish:
    """What was asked for, as far as the messages are looked at before: what who approves it has to see."""
    seqs = tuple(job.outcomes.values_list("seq", flat=True)[:MAX_ROUTED]) if job.is_selection else ()
    return Wish(job.action, job.source, job.goal, seqs, job.selector, edit=job.change)


def radius_of(request: HttpRequest, job: Job) -> Radius | None:
    """Where the messages of a job would come, as far as they are still there."""
    wish = wish_of(job)
    return blast_radius(request, wish, chosen(wish))


def _one_by_one(wish: Wish) -> list[BrowsedMessage]:
    door = gateway()
    return [message for seq in wish.seqs[:MAX_ROUTED] for message in door.message(wish.queue, seq).messages]


def control(request: HttpRequest, job: Job, action: str, rate: int = 0) -> tuple[Job, bool]:
    """Approve, pause, go on with, slow down, cancel a job, or try again what failed in it, in a job of its own.

    The job, and whether anything changed: it may have been over. Raises Http404 for another action.
    """
    for place in job_service.places(job):
        for verb in job_service.verbs_to(action, job):
            require(request, verb, place)
    if action in ("approve", "retry"):
        _require_sight(request, job.action, job.source)
    by, before = request.user.get_username(), {"job": str(job.id), "state": job.state}
    with trail.recording(request, f"{action} job", job.queue, before=before) as change:
        is_done = True
        match action:
            case "approve":
                check_ways(radius_of(request, job) if job.action == Action.RETRY else None)
                is_done = job_service.approve(job, by)
            case "pause":
                is_done = job_service.pause(job, by)
            case "resume":
                is_done = job_service.go_on(job)
            case "cancel":
                is_done = job_service.cancel(job, by)
            case "rate":
                is_done = job_service.slow_down(job, rate)
            case "retry":
                job = job_service.retry_failed(job, by)
            case _:
                raise Http404(f"A job knows no {action!r}.")
        change.after = {"job": str(job.id), "state": job.state}
    return job, is_done
