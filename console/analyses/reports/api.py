"""Serve reports and their editions in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, QueryDict
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status
from pydantic import create_model

from analytics.requests.catalogue import ANALYSES
from analytics.requests.parameters import Parameter
from brokerapp.errors import RequestRefused
from console.access.roles import Permission
from console.analyses.exports.formats import FILES, ExportFormatName, export_response
from console.analyses.reports import report_changes
from console.analyses.reports.delivery import is_readable_by
from console.analyses.reports.edition_document import document_of_edition
from console.analyses.reports.forms import BY_CRON, NEVER, USUAL_WINDOW, ReportForm
from console.analyses.reports.models import Edition, Report
from console.analyses.time_range_form import past_moment
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation
from console.api.common.paging import Page, Paged, page_of
from console.ui.preferences import timezones

router = Router(tags=["reports"])


def _usual_window(parameter: Parameter | None) -> str:
    """Return the time range of a report's analysis that names none."""
    if parameter is None or USUAL_WINDOW in dict(parameter.choices):
        return USUAL_WINDOW
    return parameter.default


#: Parameters of analyses beside the time range and the destination: a report that is returned has them beside `kind`.
_FURTHER = sorted({each.name for kind in ANALYSES.values() for each in kind.parameters} - {"window", "destination"})
_FurtherParameters = create_model(
    "_FurtherParameters", __base__=RequestBody, **dict.fromkeys(_FURTHER, (str | None, None))
)


class ReportQuestion(_FurtherParameters):
    """An analysis of a report: its kind and its parameters; `query` is the id of a saved query, of the kind `sql`.

    `parameters`: those of the analysis beside the time range and the destination, such as `measure` of a forecast. They
    may stand beside `kind`, too, as in what is returned for a report. Without `window` it is the last day, or the usual
    time range of an analysis that needs more.
    """

    kind: str
    query: int | None = None
    window: str = ""
    destination: str = ""
    parameters: dict[str, str] = {}

    @property
    def values(self) -> dict[str, str]:
        """Return all parameters by their names. Raises RequestRefused for one that the analysis does not have."""
        known = {each.name: each for each in ANALYSES[self.kind].parameters} if self.kind in ANALYSES else {}
        beside = {name: value for name in _FURTHER if (value := getattr(self, name)) is not None}
        more = self.parameters | beside
        for name in more:
            if known and name not in known:
                raise RequestRefused(f"{self.kind} has no parameter {name!r}; it has {', '.join(known)}")
        return {"window": self.window or _usual_window(known.get("window")), "destination": self.destination, **more}


class ReportIn(RequestBody):
    """A report; `cron` is a crontab line in the time zone `zone`, empty for one that is made on request only.

    Its mail has the tables as CSV with `attach`, and the edition as a file with `document`.
    """

    name: str
    questions: list[ReportQuestion]
    cron: str = ""
    zone: str = "UTC"
    missed: str = "once"
    roles: list[str] = []
    addresses: list[str] = []
    attach: bool = True
    document: Literal["", "html", "pdf", "png"] = ""
    keep_days: int = 90
    is_on: bool = True


class ReportOut(Schema):
    """The definition of a report, with its schedule."""

    id: int
    name: str
    questions: list[dict[str, Any]]
    cron: str
    zone: str
    words: str
    missed: str
    is_on: bool
    due: datetime | None
    attach: bool
    document: str
    keep_days: int
    owner: str

    @staticmethod
    def resolve_words(report: Report) -> str:
        """Describe the schedule in words."""
        return str(report.timing or "on demand")


class EditionOut(Schema):
    """An edition, with the runs of its analyses."""

    id: int
    moment: datetime
    state: str
    reason: str
    missed: int
    mail: str
    mail_detail: str
    asked_by: str
    created: datetime
    finished: datetime | None
    runs: list[UUID]

    @staticmethod
    def resolve_runs(edition: Edition) -> list[UUID]:
        """Return the runs in the order of the report's analyses."""
        return list(edition.runs.order_by("created").values_list("id", flat=True))


def _form(request: HttpRequest, wanted: ReportIn, report: Report | None) -> ReportForm:
    """Build the form of the page from a request, as it contains the rules of validation. Raises RequestRefused."""
    data = QueryDict(mutable=True)
    data.update(
        {name: str(getattr(wanted, name)) for name in ("name", "cron", "zone", "missed", "document", "keep_days")}
    )
    data.update({"rhythm": BY_CRON if wanted.cron else NEVER, "addresses": ", ".join(wanted.addresses)})
    data.setlist("roles", wanted.roles)
    data.setlist("kind", [question.kind for question in wanted.questions if question.query is None])
    data.setlist("query", [str(question.query) for question in wanted.questions if question.query is not None])
    for question in wanted.questions:
        if question.query is not None:
            data[f"query.{question.query}.window"] = question.window or USUAL_WINDOW
            continue
        data.update({f"{question.kind}.{name}": value for name, value in question.values.items()})
    if wanted.attach:
        data["attach"] = "on"
    form = ReportForm(data, report, user=request.user)
    if not form.is_valid():
        raise RequestRefused("; ".join(f"{name}: {text}" for name, texts in form.errors.items() for text in texts))
    return form


def _save(request: HttpRequest, wanted: ReportIn, report: Report | None) -> Report:
    return report_changes.save(request, _form(request, wanted, report), report, wanted.is_on)


@operation(router, "GET", "", Permission.SEE, response=list[ReportOut])
def list_reports(request: HttpRequest) -> Any:
    """List visible reports, by name."""
    return [report for report in Report.objects.all() if is_readable_by(request.user, report)]


@operation(router, "POST", "", Permission.SCHEDULE, response={201: ReportOut})
def create_report(request: HttpRequest, wanted: ReportIn) -> Any:
    """Create a report."""
    return Status(201, _save(request, wanted, None))


@operation(router, "GET", "/{int:report_id}", Permission.SEE, response=ReportOut)
def get_report(request: HttpRequest, report_id: int) -> Any:
    """Get a report."""
    return report_changes.get_report_or_404(request, report_id)


@operation(router, "PUT", "/{int:report_id}", Permission.SCHEDULE, response=ReportOut)
def change_report(request: HttpRequest, report_id: int, wanted: ReportIn) -> Any:
    """Replace a report."""
    return _save(request, wanted, report_changes.get_changeable_report(request, report_id))


@operation(router, "DELETE", "/{int:report_id}", Permission.SCHEDULE, response={204: None})
def delete_report(request: HttpRequest, report_id: int) -> Any:
    """Delete a report with all its editions."""
    report_changes.delete(request, report_changes.get_changeable_report(request, report_id))
    return Status(204, None)


@operation(router, "POST", "/{int:report_id}/run", Permission.SCHEDULE, response={201: EditionOut})
def run_report(request: HttpRequest, report_id: int, until: str = "") -> Any:
    """Generate an edition now, with time ranges that end at a past time if `until` is given."""
    report = report_changes.get_changeable_report(request, report_id)
    moment = past_moment(until, timezones.get_zone(report.zone)) if until else None
    return Status(201, report_changes.run(request, report, moment))


@operation(router, "GET", "/{int:report_id}/editions", Permission.SEE, response=Page[EditionOut])
def list_editions(request: HttpRequest, report_id: int, query: Paged) -> Any:
    """List the editions of a report, newest first."""
    return page_of(report_changes.get_report_or_404(request, report_id).editions.all(), query)


@operation(router, "GET", "/{int:report_id}/editions/{int:edition_id}/export", Permission.SEE, **FILES)
def export_edition(request: HttpRequest, report_id: int, edition_id: int, format: ExportFormatName) -> Any:
    """Export an edition of a report as one file, with times in the report's time zone."""
    edition = get_object_or_404(report_changes.get_report_or_404(request, report_id).editions, pk=edition_id)
    if edition.state == Edition.State.RUNNING:
        raise Http404(f"Edition {edition_id} is still being generated.")
    return export_response(format, lambda max_rows: document_of_edition(edition, max_rows, request.user))
