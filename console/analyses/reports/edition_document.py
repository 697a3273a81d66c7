"""Build the document that is exported of an edition of a report, in the report's time zone, as its page is."""

from __future__ import annotations

from django.urls import reverse
from django.utils.text import capfirst

from console.access.permissions import AnyUser
from console.analyses.exports.document import ExportDocument, section_of
from console.analyses.reports.content import sections_of
from console.analyses.reports.models import Edition
from console.ui.formatting import number_format, time_format
from console.ui.formatting.absolute_urls import absolute_url

#: Rows of each table: an edition has up to 12 analyses with several tables each.
MAX_ROWS = 100


def document_of_edition(edition: Edition, max_rows: int = MAX_ROWS, user: AnyUser | None = None) -> ExportDocument:
    """Build the document of an edition; for a user without the results that the user may not see."""
    report = edition.report
    moment = time_format.format_time(edition.moment, report.zone)
    by = f", requested by {edition.asked_by}" if edition.asked_by else ""
    schedule = f" {capfirst(report.timing.words)}." if report.timing else ""
    return ExportDocument(
        title=report.name,
        lines=[f"{moment}{by}.{schedule}"],
        sections=[
            section_of(part.run, part.result, report.zone, min(max_rows, MAX_ROWS))
            for part in sections_of(edition, user)
        ],
        warnings=list(_warnings(edition)),
        url=absolute_url(reverse("edition", args=[report.pk, edition.pk])),
        zone=report.zone,
        file_name=f"report-{report.pk}-{edition.moment:%Y%m%dT%H%M}",
    )


def _warnings(edition: Edition) -> list[str]:
    found = []
    if edition.state in (Edition.State.FAILED, Edition.State.SKIPPED):
        found.append(
            f"This edition {'failed' if edition.state == Edition.State.FAILED else 'was skipped'}. {edition.reason}"
        )
    if edition.missed:
        missed = number_format.pluralize_count(edition.missed, "previous run")
        found.append(f"{missed} missed while Sluice was not running.")
    return found
