"""Whose turn it is: how many analyses run at once, in all and for one person, and who waits at which place.

The line is in the database: a run that waits was not sent to the workers yet. So it may be long, is seen by everybody,
and survives the end of any process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from brokerapp.system.environment import Environment
from console.analyses.models import AnalysisRun


def choose_next(open_runs: Iterable[AnalysisRun], in_all: int, of_one: int) -> list[AnalysisRun]:
    """Choose the runs to start next, the oldest first. Pure."""
    open_runs = list(open_runs)
    busy = Counter(run.person for run in open_runs if run.sent)
    chosen = []
    for run in open_runs:
        if not run.sent and busy.total() < in_all and busy[run.person] < of_one:
            busy[run.person] += 1
            chosen.append(run)
    return chosen


def claim_next(environment: Environment) -> list[AnalysisRun]:
    """Return the runs to start now, and mark them as sent, so that no other process starts them."""
    with transaction.atomic():
        open_runs = AnalysisRun.objects.select_for_update().exclude(state__in=AnalysisRun.FINAL).order_by("created")
        chosen = choose_next(open_runs, environment.analyses_at_once, environment.analyses_of_one)
        AnalysisRun.objects.filter(pk__in=[run.pk for run in chosen]).update(sent=timezone.now())
    return chosen


def waiting_ids() -> list[str]:
    """Return the ids of the queued runs, in order."""
    waiting = AnalysisRun.objects.filter(state=AnalysisRun.State.QUEUED, sent=None).order_by("created")
    return [str(each) for each in waiting.values_list("id", flat=True)]


def queue_position(run_id: str, line: list[str]) -> str:
    """Describe the position of a queued run."""
    if run_id not in line:
        return "Waiting for a worker"
    number = line.index(run_id) + 1
    return f"Position {number} of {len(line)} in the queue" if len(line) > 1 else "Next in the queue"
