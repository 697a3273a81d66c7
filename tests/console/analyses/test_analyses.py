"""Test runs of analyses: start, progress, result, failure, cancellation."""

import base64
import json
import re
import time
import uuid
from datetime import timedelta

import pytest
import redis
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from analytics.requests.catalogue import ANALYSES
from analytics.spark.run_progress import RunProgress
from analytics.spark.run_registry import RunRegistry
from console import tasks
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.analyses.questions import catalogue, choice_for
from console.audit.models import AuditEntry
from tests.console.conftest import waiting_tasks

RESULT = {
    "sentence": "12 messages went through one destination.",
    "window": {"since_us": 1_700_000_000_000_000, "until_us": 1_700_003_600_000_000},
    "rows_read": 1234,
    "freshness_us": 1_700_003_000_000_000,
    "charts": [{"title": "Arrivals a minute", "figure": {"data": [{"x": [1], "y": [2]}], "layout": {}}}],
    "tables": [
        {
            "title": "By destination",
            "columns": [
                {"name": "destination", "label": "Destination", "unit": "", "about": "destination"},
                {"name": "bytes", "label": "Size", "unit": "bytes"},
            ],
            "rows": [["queue://orders", 2048], ["</script><b>", None]],
            "total_rows": 2,
        }
    ],
    "seconds": 1.5, "definition": 3,
}  # fmt: skip


@pytest.fixture
def run(db) -> AnalysisRun:
    request = {"kind": "traffic", "window": "1h"}
    return AnalysisRun.objects.create(kind="traffic", title="Traffic by destination", request=request, asked_by="ada")


def page_of(client, run) -> str:
    return client.get(reverse("run", kwargs={"run_id": run.id})).content.decode()


def test_a_started_analysis_waits_for_a_spark_worker_under_the_id_of_its_run(admin, console):
    waiting_tasks("spark")
    response = admin.post(reverse("start-run"), {"kind": "traffic", "window": "15m"})
    run = AnalysisRun.objects.get()
    assert response["Location"] == reverse("run", kwargs={"run_id": run.id})
    assert waiting_tasks("spark") == [("analytics.tasks.analyse", [str(run.id), {"kind": "traffic", "window": "15m"}])]
    assert AuditEntry.objects.get().action == "analyse"


@pytest.mark.parametrize(("kind", "window"), [("nonsense", "1h"), ("traffic", "yesterday")])
def test_what_cannot_be_asked_is_refused_with_the_reason(kind, window, admin, db):
    response = admin.post(reverse("start-run"), {"kind": kind, "window": window})
    assert response.status_code == 400
    assert response.context["error"]
    assert not AnalysisRun.objects.exists()


def test_every_question_has_a_form_that_keeps_what_was_refused(admin, db):
    for analysis in catalogue():
        page = admin.get(reverse("ask-analysis", kwargs={"kind": analysis.kind})).content.decode()
        assert escape(analysis.question) in page
        assert all(f'name="{each.name}"' in page for each in analysis.parameters)
    response = admin.post(reverse("start-run"), {"kind": "traffic", "window": "6h", "destination": "queue://"})
    assert response.status_code == 400
    page = response.content.decode()
    assert "expected a name, or a pattern" in page
    assert '<option value="6h" selected>' in page
    assert 'value="queue://"' in page
    assert admin.get(reverse("ask-analysis", kwargs={"kind": "weather"})).status_code == 404


@pytest.mark.parametrize(
    ("seconds", "chosen"), [(900, "15m"), (901, "1h"), (7200, "6h"), (86_400, "24h"), (30 * 86_400, "7d")]
)
def test_a_form_begins_with_the_shortest_window_that_reaches_as_far_back_as_what_was_looked_at(seconds, chosen):
    assert choice_for(ANALYSES["traffic"], seconds) == chosen


def test_a_form_says_what_the_last_run_of_its_kind_took(run, admin):
    url = reverse("ask-analysis", kwargs={"kind": "traffic"})
    assert "The last one" not in admin.get(url).content.decode()
    now = timezone.now()
    AnalysisRun.objects.filter(pk=run.pk).update(
        state="done", rows=1234567, started=now - timedelta(minutes=2), finished=now
    )
    said = admin.get(url).content.decode()
    assert "Last run: 2 min for 1,234,567 recorded events of the last hour." in said


def test_a_window_that_somebody_looked_at_is_asked_about(admin, db):
    url = reverse("ask-analysis", kwargs={"kind": "traffic"})
    now = int(time.time())
    queries = {
        "window=24h": "24h",
        "window=6h": "6h",
        "window=15m": "15m",
        f"from={now - 7000}&to={now - 60}": "custom",
    }
    for query, chosen in queries.items():
        assert f'<option value="{chosen}" selected>' in admin.get(f"{url}?{query}").content.decode()
    shown = admin.get(f"{url}?window=30d").context["time_range"]
    assert shown.is_custom, "no choice reaches as far back"
    assert int(shown.until_s) - int(shown.since_s) == 30 * 86_400


def test_a_run_whose_task_cannot_be_sent_has_failed_and_says_why(admin, console_without_store):
    admin.post(reverse("start-run"), {"kind": "traffic", "window": "1h"})
    run = AnalysisRun.objects.get()
    assert run.state == "failed"
    assert "could not be queued" in run.reason


def test_a_run_goes_through_its_states(run, console):
    tasks.run_changed(str(run.id), "starting", {"stage": "Waiting for Spark"})
    tasks.run_changed(str(run.id), "running", {"stage": "Reading", "progress": 0.4})
    run.refresh_from_db()
    assert (run.state, run.stage, run.progress) == ("running", "Reading", 0.4)
    assert run.started is not None
    tasks.run_changed(str(run.id), "done", {"sentence": "Done."})
    run.refresh_from_db()
    assert (run.state, run.progress, run.sentence) == ("done", 1.0, "Done.")
    assert run.result == f"{run.id}/result.json"


@pytest.mark.parametrize("final", ["done", "failed", "cancelled"])
def test_a_run_that_is_over_stays_so(final, run, console):
    assert tasks.run_changed(str(run.id), final, {})
    assert not tasks.run_changed(str(run.id), "running", {"stage": "late"})
    run.refresh_from_db()
    assert (run.state, run.stage) == (final, "")


def test_a_run_nobody_knows_is_ignored(console, db):
    assert not tasks.run_changed(str(uuid.uuid4()), "running", {})


def test_a_finished_run_shows_charts_and_tables(run, admin, console, settings):
    folder = settings.SLUICE.results / str(run.id)
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(RESULT))
    tasks.run_changed(str(run.id), "done", {"sentence": RESULT["sentence"]})
    response = admin.get(reverse("run", kwargs={"run_id": run.id}))
    text = response.content.decode()
    assert "12 messages went through one destination." in text
    assert 'data-figure="figure-0"' in text
    assert "2.0 KiB" in text
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<a [^>]*>)?([^<]+)", text))
    assert (facts["Rows read"], facts["Analysis"]) == (f"{RESULT['rows_read']:,}", "version 3")
    assert "Recorded up to" in facts
    assert "Last hour" in text, "the parameters it was asked with"
    assert "&lt;/script&gt;&lt;b&gt;" in text
    assert "is not archived yet and not included" in text
    assert f'href="{reverse("queue", kwargs={"name": "orders"})}?from=1700000000&amp;to=1700003600"' in text
    assert "plotly.min.js" in text
    assert "'unsafe" not in response["Content-Security-Policy"]


def test_a_result_file_outside_the_folder_of_results_is_not_read(run, settings, tmp_path, console_without_store):
    (tmp_path / "secret.json").write_text("{}")
    run.result = "../secret.json"
    assert run_service.result_of(run) is None


def test_a_failed_run_shows_its_reason_and_can_be_run_again(run, admin, console):
    tasks.run_changed(str(run.id), "failed", {"reason": "Java heap space"})
    text = page_of(admin, run)
    assert "Java heap space" in text
    assert "Run again" in text
    assert "plotly" not in text


def test_cancel_ends_the_run_and_tells_the_worker_without_waiting_for_another_task(run, admin, console, settings):
    waiting_tasks("default")
    with redis.Redis.from_url(settings.SLUICE.redis_url) as store, store.pubsub() as told:
        told.psubscribe("*pidbox*")
        assert told.get_message(timeout=10)["type"] == "psubscribe"
        admin.post(reverse("cancel-run", kwargs={"run_id": run.id}))
        said = json.loads(told.get_message(timeout=10)["data"])
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "Cancelled by admin.")
    order = json.loads(base64.b64decode(said["body"]))
    assert order["method"] == "revoke"
    assert order["arguments"] == {"task_id": str(run.id), "terminate": True, "signal": "SIGTERM"}
    assert RunRegistry(settings.SLUICE).is_cancelled(str(run.id))
    assert ("analytics.tasks.sweep", [str(run.id)]) in waiting_tasks("spark")


def test_a_run_that_is_over_is_not_cancelled(run, admin, console):
    tasks.run_changed(str(run.id), "done", {})
    admin.post(reverse("cancel-run", kwargs={"run_id": run.id}))
    run.refresh_from_db()
    assert run.state == "done"
    assert not AuditEntry.objects.exists()


def test_a_viewer_sees_runs_and_starts_none(run, browser_of, console):
    text = browser_of("viewer").get(reverse("analyses")).content.decode()
    assert str(run.id) in text
    assert reverse("start-run") not in text


def test_an_unknown_run_is_not_found(admin):
    assert admin.get(reverse("run", kwargs={"run_id": uuid.uuid4()})).status_code == 404


def test_progress_is_read_from_the_store_while_a_worker_has_the_run(run, console, settings):
    tasks.run_changed(str(run.id), "starting", {"worker": "spark@one"})
    progress = RunProgress(settings.SLUICE.redis_url, settings.SLUICE.broker_name)
    progress.write(str(run.id), {"stage": "1 of 2: traffic", "progress": 0.25, "rows": 1234})
    run.refresh_from_db()
    assert run.state == "starting", "only the start and the end of a run are states in the database"
    cells = run_service.cells_of(run)
    assert (cells["label"], cells["stage"], cells["progress"]) == ("Running", "1 of 2: traffic", 0.25)
    assert "1,234 recorded events" in cells["rows"]
    AnalysisRun.objects.update(changed=timezone.now() - timedelta(minutes=11))
    assert tasks.fail_lost_runs() == 0, "its worker reported progress a moment ago"
    tasks.run_changed(str(run.id), "done", {})
    run.refresh_from_db()
    assert (run.state, run.rows, run_service.cells_of(run)["stage"]) == ("done", 1234, "")
    progress.clear(str(run.id))
    assert progress.read([str(run.id)]) == {}


def test_a_run_nothing_was_heard_of_has_lost_its_worker(run, console):
    tasks.run_changed(str(run.id), "running", {})
    assert tasks.fail_lost_runs() == 0
    AnalysisRun.objects.update(changed=timezone.now() - timedelta(minutes=11))
    assert tasks.fail_lost_runs() == 1
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.reason == "Worker lost: no update for 10 min."
