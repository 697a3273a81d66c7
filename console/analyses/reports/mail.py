"""The mail of an edition: a summary in sentences, charts as pictures in it, the first rows of tables, files beside it.

Figures and sentences, never the content of messages. Everything links to the page behind it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import EmailMessage as WireMessage
from email.utils import formatdate, make_msgid
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from analytics.results import csv_export
from console.analyses import result_tables
from console.analyses.exports.formats import FORMATS, export
from console.analyses.reports.content import ReportSection, sections_of
from console.analyses.reports.edition_document import document_of_edition
from console.analyses.reports.models import Edition
from console.ui.formatting import number_format, time_format
from console.ui.formatting.absolute_urls import absolute_url

#: Rows of a table that stand in the mail; what is beyond is a click away.
ROWS = 5
#: Columns that have room beside each other in the 600 pixels of a mail.
COLUMNS = 6
#: Bytes of a file that comes with the mail, at most; and of all of them.
MAX_FILE, MAX_FILES = 2_000_000, 8_000_000
#: Bytes of the edition as a file, at most: many mail servers refuse mails of more than 10 MB.
MAX_DOCUMENT = 6_000_000


@dataclass(frozen=True, slots=True)
class MailChart:
    """A chart attached to the mail of a report."""

    cid: str
    title: str
    png: bytes

    @property
    def as_data(self) -> str:
        """Return the picture as a data URL, for a preview in a browser."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


def subject(edition: Edition) -> str:
    """One line: which report, of when; for a failure that it is one."""
    day = time_format.format_time(edition.moment, edition.report.zone)
    word = "Failed: " if edition.state == Edition.State.FAILED else ""
    return " ".join(f"[{settings.SLUICE.broker_name}] {word}{edition.report.name}, {day}".split())


def preview(edition: Edition) -> str:
    """Return the mail as HTML that holds its pictures."""
    parts = sections_of(edition)
    return _page(edition, parts, _pictures(edition, parts), preview=True)


def _pictures(edition: Edition, parts: list[ReportSection]) -> list[MailChart | None]:
    return [_picture(part, number, edition.report.zone) for number, part in enumerate(parts)]


def _page(
    edition: Edition, parts: list[ReportSection], drawn: list[MailChart | None], preview: bool, note: str = ""
) -> str:
    with timezone.override(edition.report.zone):
        found = [(part, picture, _table(part)) for part, picture in zip(parts, drawn, strict=True)]
        return _render("mail.html", edition, found, preview, note)


def text(edition: Edition, note: str = "") -> str:
    """Return the mail for readers without HTML; `note`: on what is not attached."""
    with timezone.override(edition.report.zone):
        return _render("mail.txt", edition, [(part, None, None) for part in sections_of(edition)], note=note)


def _render(template: str, edition: Edition, parts: list, preview: bool = False, note: str = "") -> str:
    context = {
        "edition": edition, "report": edition.report, "zone": ZoneInfo(edition.report.zone), "preview": preview,
        "note": note,
        "broker": settings.SLUICE.broker_name, "subject": subject(edition),
        "failed": edition.state == Edition.State.FAILED,
        "url": absolute_url(reverse("edition", args=[edition.report_id, edition.pk])),
        "parts": [
            {"part": part, "picture": picture, "table": table, "url": absolute_url(reverse("run", args=[part.run.id]))}
            for part, picture, table in parts
        ],
    }  # fmt: skip
    return render_to_string(f"analyses/reports/{template}", context)


def _picture(part: ReportSection, number: int, zone: str) -> MailChart | None:
    """Return the first of its charts that can be drawn, by the clock of this zone."""
    from analytics.results import (
        chart_images,  # takes a second to load and much memory: only who draws needs it
    )

    for chart in (part.result or {}).get("charts", ()):
        if drawn := chart_images.png(chart["figure"], zone):
            return MailChart(f"chart-{number}@sluice", chart["title"], drawn)
    return None


def _table(part: ReportSection) -> dict[str, Any] | None:
    """Return the first rows and columns of its first table."""
    tables = (part.result or {}).get("tables", ())
    if not tables or not tables[0]["rows"]:
        return None
    table = tables[0]
    shown = (result_tables.cells(row, table["columns"], part.result["window"]) for row in table["rows"][:ROWS])
    rows = [[(cell, absolute_url(cell.url) if cell.url else "") for cell in row[:COLUMNS]] for row in shown]
    columns = [(column, result_tables.UNITS.get(column["unit"], "")) for column in table["columns"][:COLUMNS]]
    more = [
        number_format.pluralize_count(count, noun)
        for count, noun in ((table["total_rows"] - len(rows), "row"), (len(table["columns"]) - COLUMNS, "column"))
        if count > 0
    ]
    return {"title": table["title"], "columns": columns, "rows": rows, "more": " and ".join(more)}


def files(edition: Edition) -> Iterable[tuple[str, str]]:
    """Tables as CSV: names and texts; those that are too large are left to their pages."""
    total = 0
    for part in sections_of(edition):
        for table in (part.result or {}).get("tables", ()):
            path = settings.SLUICE.results / str(part.run.id) / table.get("file", "")
            if not path.is_file() or path.stat().st_size > MAX_FILE:
                continue
            content = "".join(csv_export.csv_lines(path))
            if len(content) <= MAX_FILE and total + len(content) <= MAX_FILES:
                total += len(content)
                yield f"{part.run.kind}-{path.stem}.csv", content


def document(edition: Edition) -> tuple[tuple[str, bytes] | None, str]:
    """Return the edition as a file, with its name, as the report says; None for no file, with a note if it is large."""
    if edition.report.document not in FORMATS:
        return None, ""
    content, name = export(edition.report.document, lambda max_rows: document_of_edition(edition, max_rows))
    if len(content) > MAX_DOCUMENT:
        size = number_format.format_bytes(len(content))
        return None, f"{name} is not attached: it has {size}. Open the report to download it."
    return (name, content), ""


class EditionMail(EmailMessage):
    """A mail whose pictures are part of its HTML, which is more than Django's own builds."""

    def __init__(self, edition: Edition, recipients: list[str]) -> None:
        self.document, note = document(edition)
        super().__init__(subject(edition), text(edition, note), to=recipients)
        parts = sections_of(edition)
        drawn = _pictures(edition, parts)
        self.html = _page(edition, parts, drawn, preview=False, note=note)
        self.pictures = [picture for picture in drawn if picture]
        self.files = list(files(edition)) if edition.report.attach else []

    def message(self) -> WireMessage:
        """Build the MIME message."""
        made = _WireMessage()
        made["Subject"], made["From"], made["To"] = self.subject, self.from_email, ", ".join(self.to)
        made["Date"], made["Message-ID"] = formatdate(localtime=True), make_msgid("report")
        made["Auto-Submitted"] = "auto-generated"
        made.set_content(self.body)
        made.add_alternative(self.html, subtype="html")
        page = made.get_payload()[1]
        for each in self.pictures:
            page.add_related(each.png, "image", "png", cid=f"<{each.cid}>", disposition="inline")
        if self.document:
            name, content = self.document
            kind, subtype = FORMATS[name.rpartition(".")[2]].media_type.split("/")
            made.add_attachment(content, kind, subtype, filename=name)
        for name, content in self.files:
            made.add_attachment(content.encode(), "text", "csv", filename=name)
        return made


class _WireMessage(WireMessage):
    """Django's backends ask for line ends of their own."""

    def as_bytes(self, unixfrom: bool = False, linesep: str = "\n") -> bytes:
        return super().as_bytes(unixfrom, policy=self.policy.clone(linesep=linesep))
