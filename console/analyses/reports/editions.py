"""Start editions that are due, finish those whose analyses ended, and delete old ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from analytics.requests.catalogue import SQL
from analytics.requests.request import AnalysisRequest
from brokerapp.errors import RequestRefused
from brokerapp.system import extras
from console.analyses import run_retention, run_service
from console.analyses.models import AnalysisRun
from console.analyses.questions import ends_of, request_for
from console.analyses.reports.models import Edition, Report
from console.analyses.reports.schedule import MissedRunPolicy, plan
from console.analyses.sql import report_queries

State = Edition.State
#: How long it takes to begin all analyses of an edition, at most.
START_TIMEOUT = timedelta(minutes=5)


def set_due(report: Report, now: datetime) -> None:
    """Set when a report is due next, after its schedule changed or it was enabled."""
    timing = report.timing
    report.due = timing.next(now, 1)[0] if timing and report.is_on else None


def start_due_editions(now: datetime) -> list[Edition]:
    """Start the editions that are due, and schedule the next ones."""
    begun = []
    for report in Report.objects.filter(is_on=True, due__lte=now):
        decided = plan(report.timing, report.due, now, MissedRunPolicy(report.missed))
        # The condition keeps two processes apart that look at the same moment.
        if Report.objects.filter(pk=report.pk, due=report.due, is_on=True).update(due=decided.next):
            is_busy = report.editions.filter(state=State.RUNNING).exists()
            for number, moment in enumerate(decided.run):
                begun.append(_begin(report, moment, is_busy, missed=0 if number else decided.missed))
            if decided.missed and not decided.run:
                _skip(report, report.due, "Sluice was not running at the scheduled time.", decided.missed)
    return begun


def _begin(report: Report, moment: datetime, is_busy: bool, missed: int) -> Edition:
    if is_busy:
        return _skip(report, moment, "The previous edition was still running.", missed)
    if not extras.is_installed(extras.ANALYTICS):
        return _skip(report, moment, extras.missing(extras.ANALYTICS, "Analyses need"), missed)
    return start_edition(report, moment, missed=missed)


def _skip(report: Report, moment: datetime, reason: str, missed: int) -> Edition:
    fields = {"state": State.SKIPPED, "reason": reason, "finished": timezone.now(), "missed": missed}
    return report.editions.create(moment=moment, **fields)


def start_edition(report: Report, moment: datetime, asked_by: str = "", missed: int = 0) -> Edition:
    """Make an edition for the time that ends at the moment."""
    parts = len(report.questions)
    edition = report.editions.create(moment=moment, asked_by=asked_by, missed=missed, parts=parts)
    for question in report.questions:
        kind = question["kind"]
        try:
            title, parameters = _request_for(report, question)
        except RequestRefused as error:  # the analysis changed since the report was written
            AnalysisRun.objects.create(
                kind=kind, title=kind, request=question, asked_by=report.name, edition=edition,
                state=AnalysisRun.State.FAILED, reason=str(error), finished=timezone.now(),
            )  # fmt: skip
            continue
        run_service.start(kind, title, parameters | _ends(parameters, moment), f"report {report.name}", edition.pk)
    finish_if_complete(edition)
    return edition


def _request_for(report: Report, question: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if question["kind"] == SQL:
        return report_queries.request_of(question, report_queries.owner_named(report.owner))
    return request_for(question["kind"], question)


def start_edition_now(report: Report, asked_by: str, moment: datetime | None = None) -> Edition:
    """Make an edition for the time that ends now, or at a past moment. Raises RequestRefused.

    It is refused while another one is being made, for a moment whose editions are deleted already, and where the extra
    `analytics` is not installed.
    """
    extras.require(extras.ANALYTICS, "Analyses need")
    now = timezone.now()
    if moment is not None and report.keep_days and moment < now - timedelta(days=report.keep_days):
        raise RequestRefused(
            f"Report “{report.name}” keeps editions for {report.keep_days} days, and this one would be older:"
            " choose a later time."
        )
    if report.editions.filter(state=State.RUNNING).exists():
        raise RequestRefused(f"Report “{report.name}” is already running. Wait until it finishes, or cancel its runs.")
    return start_edition(report, moment or now, asked_by)


def _ends(parameters: Mapping[str, Any], moment: datetime) -> dict[str, int]:
    """Return the window that ends at the moment, whenever a worker gets to it."""
    return ends_of(AnalysisRequest("", parameters["window"]).window_at(int(moment.timestamp() * 1_000_000)))


def finish_if_complete(edition: Edition) -> bool:
    """End an edition whose analyses are over; whether it ended now."""
    found = list(edition.runs.order_by("created"))
    if any(not run.is_final for run in found):
        return False
    is_interrupted = len(found) < edition.parts
    if is_interrupted and timezone.now() - edition.created < START_TIMEOUT:
        return False
    failed = [f"{run.title}: {run.reason or run.state}" for run in found if run.state != AnalysisRun.State.DONE]
    failed += ["Interrupted at the start."] if is_interrupted else []
    now = timezone.now()
    fields = {"state": State.FAILED if failed else State.DONE, "reason": "\n".join(failed), "finished": now}
    unfinished = Edition.objects.filter(pk=edition.pk, state=State.RUNNING)
    is_new = unfinished.update(**fields, mail=Edition.Mail.DUE, mail_due=now) == 1
    if is_new:
        edition.refresh_from_db()
    return is_new


def finish_complete_editions() -> list[Edition]:
    """End all editions whose analyses are over."""
    running = Edition.objects.filter(state=State.RUNNING).select_related("report")
    return [edition for edition in running if finish_if_complete(edition)]


def last_successful(report: Report) -> Edition | None:
    """Return the latest successful edition of a report."""
    return report.editions.filter(state=State.DONE).first()


def purge_editions(now: datetime) -> int:
    """Delete editions past their report's retention, except the latest successful and pinned ones."""
    count = 0
    for report in Report.objects.exclude(keep_days=0):
        good = last_successful(report)
        old = report.editions.filter(moment__lt=now - timedelta(days=report.keep_days)).exclude(state=State.RUNNING)
        for edition in old.exclude(pk=good.pk if good else None).exclude(runs__pinned=True):
            delete_edition(edition)
            count += 1
    return count


def delete_report(report: Report) -> None:
    """Delete a report with all its editions."""
    for edition in list(report.editions.all()):
        delete_edition(edition)
    report.delete()


def delete_edition(edition: Edition) -> None:
    """Delete an edition with its runs; those that are pinned stay, without it."""
    for run in edition.runs.exclude(state__in=AnalysisRun.FINAL):
        run_service.cancel(run, "the deletion of its report")
    with transaction.atomic():
        edition.runs.filter(pinned=True).update(edition=None)
        run_retention.delete(list(edition.runs.all()))
        edition.delete()
