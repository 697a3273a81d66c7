"""Test analyses of explicit time ranges: forms, links, API, and links to them from pages."""

import re
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from analytics.archive.broker_archive import BrokerArchive
from analytics.tables.catalog import TableCatalog
from analytics.tables.day_manifest import DayManifest, HourRecord, SourceFile
from analytics.tables.storage import FolderStorage
from brokerapp.model.destination import Destination
from console.alerts.delivery.models import AlertFiring
from console.analyses import time_range_form
from console.analyses.charts import Plot
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters
from console.analyses.reports.models import Report
from console.analyses.window_links import analysis_link, analysis_links
from console.audit.models import AuditEntry
from console.metrics.charts_history import ChartWindow
from console.ui.preferences.models import UserSetting

ASK = {name: f"/analytics/ask/{name}/" for name in ("traffic", "weeks")}
#: The night in which clocks of Berlin went back: 02:00 to 03:00 came twice.
FIRST_0230, SECOND_0230 = 1_792_888_200, 1_792_891_800


@pytest.fixture
def berlin(admin, db):
    """The admin's browser, who reads times by the clock of Berlin."""
    UserSetting.objects.update_or_create(user=User.objects.get(username="admin"), defaults={"zone": "Europe/Berlin"})
    return admin


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the form of an analysis."""
    form = page[page.index('class="card form-part stack ask"') :]
    found = dict(re.findall(r'name="([a-z_]+)"[^>]*? value="([^"]*)"', form[: form.index("</form>")]))
    return found | {"window": "custom", "kind": "traffic"}


def test_a_link_fills_in_the_form_in_the_readers_zone_and_the_run_has_exactly_that_range(berlin, console):
    page = berlin.get(f"{ASK['traffic']}?from={FIRST_0230}&to={SECOND_0230}&destination=queue://a").content.decode()
    fields = fields_of(page)
    assert (fields["from"], fields["to"]) == ("2026-10-25T02:30:00", "2026-10-25T02:30:00"), "the clock went back"
    assert (fields["zone"], fields["destination"]) == ("Europe/Berlin", "queue://a")
    response = berlin.post(reverse("start-run"), fields)
    run = AnalysisRun.objects.get()
    assert response["Location"] == reverse("run", kwargs={"run_id": run.id})
    assert run.request == {
        "kind": "traffic", "destination": "queue://a",
        "since_us": FIRST_0230 * 1_000_000, "until_us": SECOND_0230 * 1_000_000,
    }  # fmt: skip
    again = berlin.get(reverse("run", kwargs={"run_id": run.id})).content.decode()
    assert "25 Oct 2026, 02:30 CEST to 25 Oct 2026, 02:30 CET" in again


def test_times_that_were_entered_are_those_of_the_forms_zone(berlin, console):
    fields = {"kind": "traffic", "window": "custom", "zone": "Europe/Berlin"}
    berlin.post(reverse("start-run"), {**fields, "from": "2026-07-01T10:00", "to": "2026-07-01T12:30:30"})
    request = AnalysisRun.objects.get().request
    assert datetime.fromtimestamp(request["since_us"] / 1e6, UTC) == datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
    assert datetime.fromtimestamp(request["until_us"] / 1e6, UTC) == datetime(2026, 7, 1, 10, 30, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "since", "until", "said"),
    [
        ("traffic", "", "", "Enter the start of the time range"),
        ("traffic", "2026-07-01T10:00", "2026-07-01T09:00", "must start before it ends"),
        ("traffic", "2026-07-01T10:00", "2999-07-01T09:00", "must not end in the future"),
        ("weeks", "2026-07-01T10:00", "2026-07-09T09:00", "must be at most 7 days long"),
    ],
)
def test_a_range_that_cannot_be_analysed_is_refused_and_stays_in_the_form(
    kind, since, until, said, admin, console_without_store
):
    fields = {"kind": kind, "window": "custom", "from": since, "to": until, "zone": "UTC"}
    response = admin.post(reverse("start-run"), fields)
    page = response.content.decode()
    assert response.status_code == 400
    assert said in page
    assert '<option value="custom" selected>' in page
    assert f'name="from" step="1" value="{since}"' in page
    assert not AnalysisRun.objects.exists()


def test_a_range_before_the_recording_is_refused_and_one_that_begins_before_it_has_a_note(admin, console, monkeypatch):
    began = int(time.time()) - 3600
    monkeypatch.setattr(time_range_form, "recording_start_us", lambda _: began * 1_000_000)
    early = {"kind": "traffic", "window": "custom", "from": "2026-07-01T10:00", "to": "2026-07-01T11:00"}
    refused = admin.post(reverse("start-run"), early)
    assert "Nothing is recorded in this time range: recorded traffic is available since" in refused.content.decode()
    page = admin.get(f"{ASK['traffic']}?from={began - 600}&to={began + 600}").content.decode()
    assert "Traffic is recorded since" in page
    assert admin.post(reverse("start-run"), fields_of(page)).status_code == 302


def test_tables_reach_further_back_than_the_archive_for_analyses_that_read_them(admin, console, settings, monkeypatch):
    monkeypatch.setattr(time_range_form, "recording_start_us", lambda _: int(time.time()) * 1_000_000 - 3_600_000_000)
    tables = TableCatalog(FolderStorage(settings.SLUICE.tables), BrokerArchive(settings.SLUICE.archive, "main"))
    july = int(datetime(2026, 7, 1, tzinfo=UTC).timestamp()) * 1_000_000
    counted = HourRecord((SourceFile("part-1-0.parquet", 5),))
    tables.replace_day(july, DayManifest({9: counted, 10: counted}, {"hourly": {}}))
    asked = {"window": "custom", "from": "2026-07-01T09:30", "to": "2026-07-01T11:00"}
    assert admin.post(reverse("start-run"), {"kind": "traffic", **asked}).status_code == 302
    refused = admin.post(reverse("start-run"), {"kind": "repeats", **asked}).content.decode()
    assert "Nothing is recorded in this time range" in refused
    earlier = {**asked, "kind": "traffic", "from": "2026-06-30T09:30", "to": "2026-07-01T09:00"}
    assert "available since 2026-07-01 09:00:00" in admin.post(reverse("start-run"), earlier).content.decode()


def test_a_failed_run_of_a_range_is_started_again_with_the_same_range(admin, console):
    now_us = time.time_ns() // 1000
    request = {"kind": "traffic", "since_us": now_us - 7_200_000_000, "until_us": now_us - 3_600_000_000}
    run = AnalysisRun.objects.create(kind="traffic", title="Traffic", request=request, asked_by="ada", state="failed")
    page = admin.get(reverse("run", kwargs={"run_id": run.id})).content.decode()
    shown = dict(re.findall(r'name="([a-z_]+)"\s+value="([^"]*)">', page))
    admin.post(reverse("start-run"), {name: shown[name] for name in request})
    assert AnalysisRun.objects.exclude(pk=run.pk).get().request == request


def test_the_api_takes_times_and_durations(admin, console):
    asked = {"kind": "traffic", "since": "2026-07-01T10:00+02:00", "until": "2026-07-01T09:00"}
    made = admin.post("/api/v1/analyses/runs", asked, content_type="application/json")
    assert made.status_code == 201, made.content
    assert made.json()["request"] == {
        "kind": "traffic", "since_us": 1_782_892_800_000_000, "until_us": 1_782_896_400_000_000,
    }  # fmt: skip
    made = admin.post("/api/v1/analyses/runs", {"kind": "traffic", "since": "3h"}, content_type="application/json")
    request = made.json()["request"]
    assert request["until_us"] - request["since_us"] == 3 * 3_600_000_000
    both = {"kind": "traffic", "since": "3h", "parameters": {"window": "1h"}}
    refused = admin.post("/api/v1/analyses/runs", both, content_type="application/json")
    assert refused.status_code == 409
    assert "exclude each other" in refused.json()["detail"]


def test_parameters_name_the_range_in_the_readers_zone():
    asked = {"since_us": FIRST_0230 * 10**6, "until_us": (FIRST_0230 + 65) * 10**6, "destination": "queue://a"}
    with timezone.override("Europe/Berlin"):
        assert describe_parameters("traffic", asked) == "25 Oct 2026, 02:30:00 to 02:31:05 CEST, Destination: queue://a"
    assert describe_parameters("traffic", {"window": "24h", **asked}).startswith("Last 24 hours"), "of a report"


def test_links_name_the_range_and_the_destination():
    links = analysis_links("from=1&to=2", Destination.queue("a b&c"))
    assert [title for title, _ in links][:3] == [
        "Traffic by destination",
        "Depth and forecast",
        "Acknowledgement latency",
    ]
    assert parse_qs(urlsplit(links[0][1]).query) == {"from": ["1"], "to": ["2"], "destination": ["queue://a b&c"]}
    assert "Fan-out" in dict(analysis_links("window=1h", Destination.topic("t")))
    moment = datetime(2026, 7, 1, 8, 0, 0, 500_000, tzinfo=UTC)
    ends = parse_qs(urlsplit(analysis_link("traffic", moment, moment)).query)
    assert (int(ends["to"][0]) - int(ends["from"][0])) == 121, "a minute before and after it, in whole seconds"


def test_charts_lead_to_analyses_of_what_they_show_for_who_may_run_them(admin, browser_of, console):
    now = int(time.time())
    query = f"from={now - 1800}&to={now - 600}"
    page = admin.get(f"{reverse('overview')}?{query}").content.decode()
    assert escape(f"{ASK['traffic']}?{query}") in page
    assert f"{ASK['traffic']}?window=15m" in admin.get(reverse("overview")).content.decode()
    assert ASK["traffic"] not in browser_of("viewer").get(reverse("overview")).content.decode()


def test_historical_depths_lead_to_analyses_of_the_time_around_them(admin, console):
    moment = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=3)
    page = admin.get(reverse("depths"), {"at": f"{moment:%Y-%m-%dT%H:%M}"}).content.decode()
    at = int(moment.timestamp())
    assert f"{ASK['traffic']}?from={at - 1800}&amp;to={at + 1800}" in page


def test_an_alert_leads_to_analyses_of_its_time_with_what_led_to_it(admin, console):
    since = timezone.now() - timedelta(hours=2)
    fields = {"since": since, "fired": since, "ended": since + timedelta(minutes=30), "state": "ended"}
    firing = AlertFiring.objects.create(rule_name="Deep", subject="queue://orders", value=1, worst=1, **fields)
    page = admin.get(reverse("firing", args=[firing.pk])).content.decode()
    url = next(each for each in re.findall(r'href="([^"]+)"', page) if each.startswith(ASK["traffic"]))
    found = parse_qs(urlsplit(url.replace("&amp;", "&")).query)
    assert found["destination"] == ["queue://orders"]
    assert int(found["from"][0]) == int((since - timedelta(minutes=15)).timestamp())
    assert 0 <= int(found["to"][0]) - (since + timedelta(minutes=30)).timestamp() < 1


def test_a_report_is_run_for_time_ranges_that_end_at_a_past_time(admin, console):
    report = Report.objects.create(
        name="Daily", zone="Europe/Berlin", questions=[{"kind": "traffic", "window": "1h"}], owner="admin", keep_days=0
    )
    url = reverse("change-report", args=[report.pk, "run-until"])
    response = admin.post(url, {"until": "2026-07-01T10:00"})
    edition = report.editions.get()
    assert response.url == reverse("edition", args=[report.pk, edition.pk])
    assert edition.moment == datetime(2026, 7, 1, 8, tzinfo=UTC)
    request = edition.runs.get().request
    assert (request["since_us"], request["until_us"]) == (1_782_889_200_000_000, 1_782_892_800_000_000)
    assert AuditEntry.objects.get(action="run report").after == {"until": "2026-07-01T08:00:00+00:00"}
    edition.delete()
    made = admin.post(f"/api/v1/reports/{report.pk}/run?until=2026-07-01T10:00Z")
    assert made.json()["moment"].startswith("2026-07-01T10:00:00")


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2999-01-01T00:00", "The time range must not end in the future"),
        ("soon", "Invalid time"),
        ("2026-07-01T10:00", "keeps editions for 30 days"),
    ],
)
def test_a_report_is_not_run_for_a_time_that_makes_no_sense(until, said, admin, console):
    report = Report.objects.create(name="Daily", questions=[{"kind": "traffic"}], owner="admin", keep_days=30)
    page = admin.post(reverse("change-report", args=[report.pk, "run-until"]), {"until": until}, follow=True)
    assert said in page.content.decode()
    assert not report.editions.exists()
    assert admin.post(f"/api/v1/reports/{report.pk}/run?until={until}").status_code == 409


def test_the_latency_chart_of_a_destination_leads_to_an_analysis_of_it(rf, admin):
    plot = Plot("latency", "Latency", {"data": [], "layout": {}})
    request = rf.get("/")
    request.user = User.objects.get(username="admin")
    context = {
        "destination": Destination.queue("a&b"), "delays": [{"acked": 1, "p50": 1.0, "p95": 2.0, "p99": 3.0}],
        "delays_plot": plot, "rights": {"analyse": True},
        "window": ChartWindow.read({}, time.time()), "chart": {}, "user": request.user, "request": request,
    }  # fmt: skip
    page = render_to_string("destinations/tabs/history.html", context)
    assert 'data-analyse="/analytics/ask/latency/?destination=queue%3A%2F%2Fa%26b"' in page
