"""Test the console where the extra `analytics` is not installed."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from analytics import tasks
from brokerapp.errors import RequestRefused
from brokerapp.system import extras
from console.analyses.models import AnalysisRun
from console.analyses.reports import editions
from console.analyses.reports.models import Report
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.conftest import waiting_tasks

NOTE = "The extra <code>analytics</code> is not installed."
QUESTION = {"kind": "traffic", "window": "15m"}


@pytest.fixture
def without_analytics(monkeypatch, console):
    monkeypatch.setattr(extras, "is_installed", lambda extra: extra != extras.ANALYTICS)
    waiting_tasks("spark")  # of other tests


@pytest.mark.parametrize("page", ["analyses", "ask-analysis", "sql", "tables", "reports"])
def test_pages_of_analyses_say_what_is_missing_and_start_nothing(without_analytics, admin, page):
    url = reverse(page, args=["traffic"] if page == "ask-analysis" else [])
    text = admin.get(url).content.decode()
    assert NOTE in text
    assert ("disabled" in text) == (page in ("ask-analysis", "sql"))


def test_the_note_is_absent_where_the_extra_is_installed(admin, db):
    assert NOTE not in admin.get(reverse("analyses")).content.decode()


def test_runs_are_refused_with_the_extra_they_need(without_analytics, admin):
    refused = admin.post(reverse("start-run"), QUESTION)
    assert refused.status_code == 409
    assert "Analyses need the extra &#x27;analytics&#x27;, which is not installed" in refused.content.decode()
    sql = admin.post(reverse("run-sql"), {"statement": "SELECT 1", "window": "1h"})
    assert "SQL queries need the extra" in sql.content.decode()
    program = caller(token_of("admin", "see", "analyse"))
    answer = program.post(
        "/api/v1/analyses/runs", {"kind": "traffic", "parameters": {"window": "15m"}}, content_type="application/json"
    )
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("Analyses need the extra 'analytics'")
    assert not AnalysisRun.objects.exists()
    assert waiting_tasks("spark") == []


def test_a_report_that_is_due_is_skipped_and_says_why(without_analytics, db):
    now = datetime(2026, 11, 2, 9, 5, tzinfo=UTC)  # it is due five minutes past each hour
    Report.objects.all().delete()
    questions = [{"kind": "traffic", "window": "1h"}]
    report = Report.objects.create(name="Hourly", questions=questions, cron="5 * * * *", due=now, owner="ada")
    [edition] = editions.start_due_editions(now)
    assert (edition.state, edition.reason) == ("skipped", extras.missing(extras.ANALYTICS, "Analyses need"))
    with pytest.raises(RequestRefused, match="Analyses need the extra 'analytics', which is not installed"):
        editions.start_edition_now(report, "ada")


def test_no_worker_is_asked_to_compute_tables(without_analytics, monkeypatch):
    monkeypatch.setattr("analytics.tables.builder.has_work", lambda environment: True)
    tasks.check_tables()
    assert waiting_tasks("spark") == []
