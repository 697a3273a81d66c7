"""Test exports of results and editions: all figures of the page are in them, formatted as there; nothing is loaded."""

import io
import json
import re
from datetime import UTC, datetime, timedelta

import pypdfium2
import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from PIL import Image

from analytics.results import charts
from console.analyses.exports.document import MAX_ROWS
from console.analyses.exports.formats import FORMATS, IMAGE_ROWS
from console.analyses.exports.pdf_file import column_widths
from console.analyses.models import AnalysisRun
from console.analyses.reports import mail
from console.analyses.reports.mail import EditionMail
from console.analyses.reports.models import Edition, Report
from console.ui.preferences.models import UserSetting

START = datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
TIMES = [f"{START + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}" for number in range(60)]
COLUMNS = [
    {"name": "destination", "label": "Destination", "unit": "", "about": "destination"},
    {"name": "sent", "label": "Sent", "unit": "messages", "about": ""},
    {"name": "bytes", "label": "Size", "unit": "bytes", "about": ""},
    {"name": "rate", "label": "Enqueue rate", "unit": "rate", "about": ""},
    {"name": "p95", "label": "Acknowledgement latency, p95", "unit": "ms", "about": ""},
    {"name": "share", "label": "Share", "unit": "part", "about": ""},
    {"name": "last", "label": "Last message", "unit": "time", "about": ""},
]
ROWS = 1200


def row(number: int) -> list:
    name = f"queue://Consumer.Billing{number}.VirtualTopic.Orders" if number % 9 else f"topic://prices.<eu>&{number}"
    return [name, 1_000_000 + 977 * number, 4096 * (number + 1), 17.25 + number, 0.5 + 13.7 * number, number / ROWS,
            f"2026-07-01T08:{number % 60:02}:07Z"]  # fmt: skip


def result() -> dict:
    since_us = int(START.timestamp()) * 1_000_000
    names = {f"queue://orders.{each}": [(number * (each + 3)) % 11 for number in range(60)] for each in range(4)}
    figures = {
        "Messages sent": charts.over_time(TIMES, names, "messages per minute"),
        "Latency": charts.bars(list(names), {"p95": [3.0, 240.0, 1800.0, 90_000.0]}, charts.MILLISECONDS),
    }  # fmt: skip
    return {
        "sentence": "1,200 destinations received 1,786 million messages; Łódź → 東京 had most.",
        "window": {"since_us": since_us, "until_us": since_us + 3_600_000_000},
        "rows_read": 1_234_567, "freshness_us": since_us + 3_000_000_000, "began_us": since_us + 60_000_000,
        "completeness": {"complete": False, "sentence": "2 files of the archive could not be read."},
        "headline": [{"label": "Messages sent", "value": 1_786_000_000, "unit": "messages"}],
        "notes": ["Some traffic was sampled: figures are estimates."],
        "charts": [{"title": title, "figure": figure} for title, figure in figures.items()],
        "tables": [
            {"title": "Traffic by destination", "columns": COLUMNS, "rows": [row(number) for number in range(1000)],
             "total_rows": ROWS, "file": "traffic.parquet"},
            {"title": "Nothing", "columns": COLUMNS[:2], "rows": [], "total_rows": 0, "file": "nothing.parquet"},
        ],
        "seconds": 12.5, "definition": 3, "levels": {"daily": 0, "hourly": 23, "raw_seconds": 3600.0},
    }  # fmt: skip


def small_result() -> dict:
    """One without charts, which take the time, and with three rows."""
    found = result()
    table = {**found["tables"][0], "rows": [row(number) for number in range(3)], "total_rows": 3}
    return {**found, "charts": [], "tables": [table]}


def finished(settings, found: dict | None = None, **more) -> AnalysisRun:
    """A run that is done, with its result."""
    request = {"kind": "traffic", "window": "1h"}
    run = AnalysisRun.objects.create(
        kind="traffic", title="Traffic by destination", request=request, asked_by="ada", state="done", **more
    )
    folder = settings.SLUICE.results / str(run.id)
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(found or result()))
    AnalysisRun.objects.filter(pk=run.pk).update(result=f"{run.id}/result.json")
    return run


@pytest.fixture
def berlin(admin, db):
    """The admin's browser, whose user reads times in Berlin's zone."""
    UserSetting.objects.update_or_create(user=User.objects.get(username="admin"), defaults={"zone": "Europe/Berlin"})
    return admin


def exported(client, run: AnalysisRun, format: str) -> bytes:
    response = client.get(reverse("export-run", args=[run.id, format]))
    assert response.status_code == 200
    assert response["Content-Type"] == FORMATS[format].media_type
    assert response["Content-Disposition"].startswith('attachment; filename="traffic-2')
    return response.content


def pages_of(pdf: bytes) -> list[str]:
    """The text of each page of a PDF."""
    with pypdfium2.PdfDocument(pdf) as document:
        return [page.get_textpage().get_text_range().replace("\r\n", "\n") for page in document]


def squeezed(text: str) -> str:
    """A text without white space: where lines of a cell end does not matter."""
    return re.sub(r"[\s\ufffe\u00ad-]+", "", text)


def test_a_pdf_has_all_rows_and_figures_as_the_page_formats_them_in_the_readers_zone(berlin, console, settings):
    pages = pages_of(exported(berlin, finished(settings), "pdf"))
    text = squeezed(" ".join(pages))
    for number in (0, 1, 500, 999):
        shown = [row(number)[0].partition("//")[2], f"{row(number)[1]:,}", f"{number / ROWS * 100:.1f}%"]
        assert all(squeezed(each) in text for each in shown), (number, shown)
    assert text.count("Consumer.Billing") == sum(number % 9 > 0 for number in range(MAX_ROWS)), "each row is there once"
    assert squeezed("1 Jul 2026, 10:59:07") in text, "by the clock of Berlin"
    assert squeezed("1 Jul 2026, 10:00 to 11:00 CEST") in text
    assert squeezed("The first 1,000 of 1,200 rows.") in text
    for said in (
        "Data after 1 Jul 2026, 10:50:00 CEST was not archived yet", "2 files of the archive could not be read",
        "figures are estimates", "1,786,000,000", "No data in this time range", "version 3", "Rows read",
        "23 hourly tables, events for the rest",
    ):  # fmt: skip
        assert squeezed(said) in text, said
    heads = [page.count("Enqueue rate") or page.replace("\n", " ").count("Enqueue rate") for page in pages]
    assert all(heads[1:]), "each page of a table has its head"
    assert f"Page {len(pages)}" in pages[-1]


def test_an_html_export_is_one_file_that_loads_nothing(berlin, console, settings):
    text = exported(berlin, finished(settings), "html").decode()
    sources = re.findall(r'(?:src|srcset)="([^"]{0,30})', text)
    assert len(sources) == 2
    assert all(each.startswith("data:image/png;base64,") for each in sources)
    assert not re.search(r"<(script|link|iframe|object)\b|@import|url\(", text)
    assert "default-src 'none'" in text
    assert text.count("Consumer.Billing") == 2 * sum(number % 9 > 0 for number in range(1000)), "in links, too"
    assert "topic prices.&lt;eu&gt;&amp;0" in " ".join(text.split()), "names are escaped"
    assert "Łódź → 東京" in text
    assert "The first 1,000 of 1,200 rows." in text
    assert f'href="{settings.SLUICE.console_url.rstrip("/")}/queues/' in text


def test_a_png_is_one_picture_with_the_first_rows(berlin, console, settings):
    found = Image.open(io.BytesIO(exported(berlin, finished(settings), "png")))
    assert found.width == 1360
    assert 2000 < found.height < 8000
    colours = found.convert("L").getcolors()
    assert max(colours)[1] == 255, "light, for paper"
    bottom = found.crop((0, found.height - 400, found.width, found.height)).convert("L")
    assert bottom.getextrema()[0] < 200, "no empty end"
    assert IMAGE_ROWS < MAX_ROWS


def test_the_api_exports_in_utc_or_a_zone_that_is_named(admin, console, settings):
    url = f"/api/v1/analyses/runs/{finished(settings, small_result()).id}/export"
    assert "1 Jul 2026, 08:00 to 09:00 UTC" in admin.get(url, {"format": "html"}).content.decode()
    there = admin.get(url, {"format": "html", "zone": "Asia/Kathmandu"}).content.decode()
    assert "1 Jul 2026, 13:45 to 14:45 +0545" in there
    assert admin.get(url, {"format": "docx"}).status_code == 422
    assert admin.get(url, {"format": "html", "zone": "Mars"}).status_code == 409
    assert admin.get(f"{url.replace('export', 'nothing')}").status_code == 404


def test_who_may_not_see_all_of_a_result_gets_no_export(browser_of, console, settings):
    run = finished(settings)
    viewer = browser_of("viewer", "queue://own.>")
    for url in (reverse("export-run", args=[run.id, "pdf"]), f"/api/v1/analyses/runs/{run.id}/export?format=pdf"):
        assert viewer.get(url).status_code in (403, 404)


@pytest.fixture
def edition(console, settings, db) -> Edition:
    """One of a report in Kolkata, with an analysis that is done and one that failed."""
    report = Report.objects.create(name="Daily <b>", zone="Asia/Kolkata", questions=[{"kind": "traffic"}], owner="ada")
    made = report.editions.create(moment=START, state=Edition.State.FAILED, reason="One failed.", parts=2)
    found = small_result()
    found["tables"][0]["rows"], found["tables"][0]["total_rows"] = [row(number) for number in range(120)], 120
    finished(settings, found, edition=made)
    AnalysisRun.objects.create(
        kind="depth", title="Depth and forecast", request={"kind": "depth"}, asked_by="r", state="failed",
        reason="Timed out after 10 min.", edition=made, finished=timezone.now(),
    )  # fmt: skip
    return made


OF_EDITION = (
    "Daily <b>", "1 Jul 2026, 13:30 to 14:30 IST", "This edition failed. One failed.", "Depth and forecast",
    "Timed out after 10 min.", "The first 100 of 120 rows.",
)  # fmt: skip


def test_an_edition_is_exported_in_the_zone_of_its_report_with_every_analysis(edition, admin):
    of = [edition.report_id, edition.pk]
    text = squeezed(" ".join(pages_of(admin.get(reverse("export-edition", args=[*of, "pdf"])).content)))
    assert [each for each in OF_EDITION if squeezed(each) not in text] == []
    made = admin.get("/api/v1/reports/{}/editions/{}/export?format=png".format(*of))
    assert made.content[:4] == b"\x89PNG"
    page = admin.get(reverse("edition", args=of)).content.decode()
    assert all(reverse("export-edition", args=[*of, each]) in page for each in FORMATS)


def test_a_mail_has_the_edition_as_the_file_that_the_report_asks_for(edition, monkeypatch):
    edition.report.document, edition.report.attach = "pdf", False
    [attached] = EditionMail(edition, ["ann@example.org"]).message().iter_attachments()
    assert (attached.get_content_type(), attached.get_filename()) == ("application/pdf", edition_file(edition))
    text = squeezed(" ".join(pages_of(attached.get_content())))
    assert [each for each in OF_EDITION if squeezed(each) not in text] == []
    monkeypatch.setattr(mail, "MAX_DOCUMENT", 1000)
    large = EditionMail(edition, ["ann@example.org"])
    assert list(large.message().iter_attachments()) == []
    for shown in (large.body, large.html):
        assert f"{edition_file(edition)} is not attached: it has" in shown
    edition.report.document = ""
    assert list(EditionMail(edition, ["ann@example.org"]).message().iter_attachments()) == []


def edition_file(edition: Edition) -> str:
    return f"report-{edition.report_id}-20260701T0800.pdf"


def test_the_form_and_the_api_set_the_format_of_the_attached_file(admin, console):
    given = {"name": "Daily", "questions": [{"kind": "traffic"}], "document": "png"}
    made = admin.post("/api/v1/reports", given, content_type="application/json").json()
    assert made["document"] == "png"
    page = admin.get(reverse("edit-report", args=[made["id"]])).content.decode()
    assert '<option value="png" selected>PNG</option>' in page
    assert (
        admin.post("/api/v1/reports", {**given, "document": "docx"}, content_type="application/json").status_code == 422
    )


def test_texts_that_are_longer_than_a_page_do_not_end_an_export(admin, console, settings):
    found = small_result()
    found["tables"][0]["rows"][0][0] = "because \x00 " * 3000
    found["sentence"] = "very " * 2000
    url = reverse("export-run", args=[finished(settings, found).id, "pdf"])
    text = " ".join(pages_of(admin.get(url).content)).split()
    assert (text.count("because"), text.count("very")) == (3000, 2000)


def test_columns_fit_on_a_page_and_numbers_stay_whole():
    heads = [("Destination", "", False), ("Sent", "messages", True), ("Reason", "", False)]
    rows = [["queue://" + "long." * 40, "1,234,567,890", "because " * 30]]
    widths = column_widths(heads, rows, 400)
    assert sum(widths) == pytest.approx(400)
    assert widths[1] > 50
    few = column_widths(heads, [["a", "1", "b"]], 400)
    assert sum(few) < 400, "a small table is not stretched"
    many = column_widths([(f"Column {each}", "", True) for each in range(40)], [["1,234,567"] * 40], 400)
    assert sum(many) == pytest.approx(400)
