"""Delete runs of analyses and their results when their retention has passed."""

from __future__ import annotations

import shutil
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from console.analyses.models import AnalysisRun

#: Runs deleted at a time, so that others may write in between.
BATCH = 200


def purge_runs(days: int) -> int:
    """Delete runs older than so many days (0: none ever) with their results; how many.

    Those that are pinned stay, and those of reports go with their editions.
    """
    if not days:
        return 0
    old = AnalysisRun.objects.filter(
        created__lt=timezone.now() - timedelta(days=days), pinned=False, edition=None, state__in=AnalysisRun.FINAL
    )
    count = 0
    while batch := list(old.order_by("created")[:BATCH]):
        count += delete(batch)
    return count


def delete(runs: list[AnalysisRun]) -> int:
    """Delete runs, their results first, so that no result is left without its run."""
    for run in runs:
        shutil.rmtree(settings.SLUICE.results / str(run.id), ignore_errors=True)
    return AnalysisRun.objects.filter(pk__in=[run.pk for run in runs]).delete()[0]
