"""List the notifications of a user: firing alerts, requests for approval, and finished work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from console.access.permissions import AnyUser, Permission, has_permission, pattern_filter, visible
from console.alerts import active_alerts
from console.analyses.models import AnalysisRun
from console.analyses.questions import readable_runs
from console.messages.jobs import failed_again as returned
from console.messages.jobs import job_service
from console.messages.jobs.models import Job
from console.messages.jobs.spec import SMALL_JOB
from console.routing.drafts import draft_service
from console.routing.drafts.models import Draft
from console.ui.formatting import number_format
from console.ui.preferences.models import UserSetting
from console.ui.preferences.user_settings import load_settings

#: Of each sort, how many are shown; all of them are on their pages, to which links lead.
MAX_SHOWN = 5
#: What waits is looked through so far for what somebody may decide.
MAX_WAITING = 200
#: What came to an end is told of for so long.
TOLD_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class NotificationItem:
    """One line of the bell; `state` colours it as badges are: act, look, good, or nothing."""

    title: str
    detail: str
    url: str
    when: datetime
    state: str = ""
    is_new: bool = False


def cells(user: AnyUser, setting: UserSetting | None = None) -> dict[str, Any]:
    """Return the live cells of the bell. It counts what fires, what waits, and what ended since its user last looked.

    When they did is in their `setting`, for who has read it already.
    """
    firing, waits, ended = _firing(user), _waiting(user), _ended(user, setting or load_settings(user))
    count = len(firing) + len(waits) + sum(each.is_new for each in ended)
    groups = [("Firing", firing, "alerts"), ("Awaiting your approval", waits, ""), ("Recently finished", ended, "")]
    shown = [(label, items[:MAX_SHOWN], len(items) - MAX_SHOWN, page) for label, items, page in groups if items]
    return {
        "count": number_format.format_integer(count) if count else "",
        "state": "act" if firing else "note" if count else "quiet",
        "says": number_format.pluralize_count(count, "notification"),
        "bell_html": render_to_string("layout/notifications.html", {"sections": shown}),
    }


def _firing(user: AnyUser) -> list[NotificationItem]:
    sees = visible(user)
    return [
        NotificationItem(
            each.rule_name, each.sentence, reverse("firing", args=[each.pk]), each.fired or each.since, "act"
        )
        for each in active_alerts.firing_now()
        if active_alerts.is_visible(each, sees)
    ]


def _waiting(user: AnyUser) -> list[NotificationItem]:
    """Return the jobs and drafts that wait for the approval of this user."""
    found = [
        NotificationItem(
            each.name, _asked(each.asked_by, each.reason), reverse("job", args=[each.id]), each.created, "look"
        )
        for each in job_service.without_edits(Job.objects.filter(state=Job.State.ASKED))[:MAX_WAITING]
        if all(
            has_permission(user, permission, place)
            for permission in job_service.permissions_to("approve", each)
            for place in job_service.affected_destinations(each)
        )
    ]
    if has_permission(user, Permission.ROUTE):
        found += [
            NotificationItem(
                each.name, f"Draft by {each.author}", reverse("draft", args=[each.pk]), each.changed, "look"
            )
            for each in draft_service.list_visible([Draft.State.ASKED], pattern_filter(user), MAX_WAITING)
        ]
    return sorted(found, key=lambda item: item.when, reverse=True)


def _asked(by: str, reason: str) -> str:
    return f"Requested by {by}: “{reason}”" if reason else f"Requested by {by}"


def _ended(user: AnyUser, setting: UserSetting) -> list[NotificationItem]:
    """Return the user's finished runs, jobs and reports, latest first, without those whose end they saw."""
    looked, since = setting.bell_seen, timezone.now() - TOLD_FOR
    found = sorted((item for ends in _ENDS for item in ends(user, since)), key=lambda item: item.when, reverse=True)
    return [replace(item, is_new=looked is None or item.when > looked) for item in found]


def _jobs(user: AnyUser, since: datetime) -> Iterator[NotificationItem]:
    took_time = Q(expected__gt=SMALL_JOB) | ~Q(approved_by="")
    found = job_service.without_edits(Job.objects.filter(took_time, asked_by=user.get_username(), finished__gt=since))
    for each in found[:MAX_SHOWN]:
        detail = each.note or f"{number_format.pluralize_count(each.done, 'message')} processed"
        if each.failed:
            detail += f", {number_format.format_integer(each.failed)} failed"
        if again := returned.highest_count(each):
            detail += f", {number_format.format_integer(again)} failed again"
        good = each.state == Job.State.DONE and not each.failed and not again
        yield NotificationItem(
            each.name, detail, reverse("job", args=[each.id]), each.finished, "good" if good else "look"
        )


def _runs(user: AnyUser, since: datetime) -> Iterator[NotificationItem]:
    found = AnalysisRun.objects.filter(asked_by=user.get_username(), finished__gt=since)
    for each in readable_runs(found, user)[:MAX_SHOWN]:
        state = "good" if each.state == AnalysisRun.State.DONE else "look"
        yield NotificationItem(
            each.title, each.sentence or each.reason, reverse("run", args=[each.id]), each.finished, state
        )


def _drafts(user: AnyUser, since: datetime) -> Iterator[NotificationItem]:
    name = user.get_username()
    decided = Draft.objects.filter(author=name, changed__gt=since).exclude(state__in=Draft.OPEN_STATES)
    for each in decided.exclude(decided_by=name)[:MAX_SHOWN]:
        is_applied = each.state == Draft.State.APPLIED
        detail = f"{'Applied' if is_applied else 'Discarded'} by {each.decided_by}"
        yield NotificationItem(
            each.name, detail, reverse("draft", args=[each.pk]), each.changed, "good" if is_applied else "look"
        )


#: Sorts of work that come to an end, each with how those of one user are found.
_ENDS: tuple[Callable[[AnyUser, datetime], Iterator[NotificationItem]], ...] = (_jobs, _runs, _drafts)
