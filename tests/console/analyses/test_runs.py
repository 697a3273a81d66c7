"""Test the queue of runs, lost workers, the list, comparisons, downloads and retention."""

import csv
import io
import re
from datetime import timedelta
from html import unescape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.urls import reverse
from django.utils import timezone

from analytics.requests.request import TimeWindow
from analytics.results import storage
from analytics.results.storage import JobResult, ResultColumn, ResultTable
from console import tasks
from console.analyses import comparison as comparing
from console.analyses import run_queue, run_retention, run_service
from console.analyses.models import AnalysisRun
from tests.console.conftest import waiting_tasks

State = AnalysisRun.State
PARAMETERS = {"window": "1h"}
WINDOW = TimeWindow(1_700_000_000_000_000, 1_700_003_600_000_000)


def made(**fields) -> AnalysisRun:
    return AnalysisRun.objects.create(
        **{"kind": "traffic", "title": "Traffic", "request": {"kind": "traffic"}, "asked_by": "ada", **fields}
    )


def finished(settings, counts: dict, **fields) -> AnalysisRun:
    """A run with its result: a table of messages by destination."""
    run = made(state=State.DONE, sentence=f"{sum(counts.values())} messages.", **fields)
    columns = (ResultColumn("destination", "Destination"), ResultColumn("arrived", "In", "messages"))
    rows = pa.table({"destination": list(counts), "arrived": list(counts.values())})
    findings = JobResult(
        run.sentence, 9, tables=(ResultTable("traffic", "Traffic", columns, rows),), notes=("Sampled <one> in 10.",)
    )
    storage.save_result(settings.SLUICE.results, str(run.id), findings, window=WINDOW, fresh_until_us=1, seconds=1)
    AnalysisRun.objects.filter(id=run.id).update(result=storage.result_path(str(run.id)))
    return run


def test_the_page_of_a_run_shows_the_notes_of_its_result(browser_of, settings, db):
    run = finished(settings, {"orders": 3})
    assert "Sampled &lt;one&gt; in 10." in browser_of("admin").get(reverse("run", args=[run.id])).content.decode()


# -- turns


def test_a_person_takes_one_place_and_leaves_the_others_to_others(db):
    open_runs = [made(asked_by=who) for who in ("ada", "ada", "bob", "cy")]
    assert run_queue.choose_next(open_runs, in_all=2, of_one=1) == [open_runs[0], open_runs[2]]
    assert run_queue.choose_next(open_runs, in_all=4, of_one=2) == open_runs
    open_runs[2].sent = timezone.now()
    assert run_queue.choose_next(open_runs, in_all=2, of_one=1) == [open_runs[0]]


def test_what_waits_says_its_place_and_is_sent_when_its_turn_comes(console, db):
    waiting_tasks("spark")
    first, second, third = (run_service.start("traffic", "Traffic", PARAMETERS, "ada") for _ in range(3))
    assert [args[0] for _, args in waiting_tasks("spark")] == [str(first.id)]
    assert run_service.cells_of(first)["stage"] == "Waiting for a worker"
    assert run_service.cells_of(third)["stage"] == "Position 2 of 2 in the queue"
    run_service.on_state_changed(
        str(first.id), State.DONE, {}
    )  # without the reports, of which one may be due at this moment
    assert [args[0] for _, args in waiting_tasks("spark")] == [str(second.id)]
    third.refresh_from_db()
    assert run_service.cells_of(third)["stage"] == "Next in the queue"


def test_who_has_too_many_waiting_is_refused_with_the_reason(admin, console, monkeypatch):
    monkeypatch.setattr(run_service, "MAX_WAITING", 1)
    for _ in range(2):
        answer = admin.post(reverse("start-run"), {"kind": "traffic", "window": "1h"})
    assert answer.status_code == 409
    assert "admin already has 1 queued analyses" in answer.content.decode()


# -- workers that are gone


def test_a_worker_that_begins_anew_ends_what_it_had_before(console, db):
    waiting_tasks("default")
    lost, other = made(), made(asked_by="bob")
    for run, worker in ((lost, "spark@one"), (other, "spark@two")):
        tasks.run_changed(str(run.id), "starting", {"worker": worker})
    assert tasks.worker_started("spark@one", timezone.now().timestamp()) == 1
    lost.refresh_from_db()
    other.refresh_from_db()
    assert (lost.state, other.state) == ("failed", "starting")
    assert "worker was restarted" in lost.reason
    assert ("analytics.tasks.sweep", [str(lost.id)]) in waiting_tasks("spark")


def test_what_a_worker_begins_after_its_start_is_not_lost(console, db):
    run, moment = made(), timezone.now().timestamp()
    tasks.run_changed(str(run.id), "starting", {"worker": "spark@one"})
    assert tasks.worker_started("spark@one", moment) == 0


def test_a_run_that_no_worker_takes_ends_with_a_question(console, db):
    run = made(sent=timezone.now() - timedelta(minutes=61))
    assert tasks.fail_lost_runs() == 1
    run.refresh_from_db()
    assert run.reason == "No Spark worker started it within 60 min."


def test_a_store_that_does_not_answer_loses_no_run(console, db, monkeypatch):
    run = made()
    tasks.run_changed(str(run.id), "starting", {"worker": "spark@one"})
    AnalysisRun.objects.filter(id=run.id).update(changed=timezone.now() - timedelta(hours=2))
    monkeypatch.setattr("analytics.spark.run_progress.RunProgress.read", lambda *_: None)
    assert tasks.fail_lost_runs() == 0
    run.refresh_from_db()
    assert run.state == "starting"
    monkeypatch.undo()
    assert tasks.fail_lost_runs() == 1


# -- the list


@pytest.fixture
def many(db):
    for number in range(30):
        made(title=f"Traffic {number:02}", state=State.DONE if number % 2 else State.FAILED, pinned=number == 3)
    made(kind="latency", title="Delays", sentence="Slow are those of orders.", asked_by="bob", state=State.DONE)


def titles(client, query: str) -> list[str]:
    return [run.title for run, *_ in client.get(reverse("runs") + query).context["rows"]]


def test_the_list_is_paged_filtered_searched_and_sorted_by_its_address(many, admin):
    assert len(titles(admin, "")) == 25
    assert len(titles(admin, "?page=2")) == 6
    assert titles(admin, "?kind=latency") == titles(admin, "?q=of+orders") == ["Delays"]
    assert titles(admin, "?show=pinned") == ["Traffic 03"]
    assert titles(admin, "?sort=title")[0] == "Delays"
    assert titles(admin, "?sort=-title")[0] == "Traffic 29"
    assert len(titles(admin, "?show=failed")) == 15
    assert titles(admin, "?q=nothing+like+it") == []
    assert len(titles(admin, "?sort=nonsense&show=nonsense&page=x")) == 25


def test_the_links_of_a_narrowed_list_keep_what_narrows_it(many, admin):
    page = admin.get(reverse("runs") + "?q=Traffic&sort=title")
    assert page.context["next"] == "?q=Traffic&sort=title&page=2"
    assert "No matching runs" in admin.get(reverse("runs") + "?q=zzz").content.decode()


# -- two runs


def test_two_runs_are_compared_row_by_row(settings, console_without_store, db, admin):
    old = finished(settings, {"orders": 100, "bills": 7, "gone": 1})
    new = finished(settings, {"orders": 120, "bills": 7, "fresh": 5})
    page = admin.get(reverse("compare-runs"), {"run": [new.id, old.id]})
    [comparison] = page.context["comparisons"]
    lines = {line.key[0]: line.pairs[0] for line in comparison.lines}
    assert {name: pair.difference for name, pair in lines.items()} == {"orders": 20, "fresh": 5, "gone": -1}
    assert [lines[name].percent for name in ("orders", "fresh", "gone")] == ["+20%", "new", "removed"]
    assert (comparison.total, comparison.same) == (3, 1)
    assert "+20 (+20%)" in " ".join(page.content.decode().split())


def test_a_run_is_compared_with_the_one_before_of_the_same_question(settings, console_without_store, db, admin):
    hourly = finished(settings, {"orders": 1}, request={"kind": "traffic", "window": "1h"})
    finished(settings, {"orders": 2}, request={"kind": "traffic", "window": "7d"})
    latest = finished(settings, {"orders": 3}, request={"kind": "traffic", "window": "1h"})
    assert admin.get(reverse("compare-runs"), {"run": latest.id}).context["old"][0] == hourly


def test_only_a_run_that_another_one_came_before_offers_to_be_compared_with_it(
    settings, console_without_store, db, admin
):
    first, second = finished(settings, {"orders": 1}), finished(settings, {"orders": 2})
    offered = [
        reverse("compare-runs") in admin.get(reverse("run", args=[run.id])).content.decode() for run in (first, second)
    ]
    assert offered == [False, True]


def test_what_cannot_be_compared_says_why(settings, console_without_store, db, admin):
    one, other = finished(settings, {"a": 1}), finished(settings, {"a": 1}, kind="latency", title="Delays")
    lost = made(state=State.FAILED)
    for chosen, words in (([one], "No previous run"), ([one, other], "different analyses"), ([one, lost], "no result")):
        answer = admin.get(reverse("compare-runs"), {"run": [run.id for run in chosen]}, follow=True)
        assert words in answer.content.decode()
    assert admin.get(reverse("compare-runs"), {"run": "x"}).status_code == 404


def test_a_table_by_time_is_not_compared():
    columns = [{"name": "minute", "unit": ""}, {"name": "arrived", "unit": "messages"}]
    assert comparing.compare({"title": "t", "columns": columns}, [], []) is None


# -- files


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_a_table_is_downloaded_whole_as_csv_and_as_parquet(settings, console_without_store, db, admin):
    run = finished(settings, {f"q{number}": number for number in range(1500)} | {"=1+1": 1})

    def answer(format):
        found = admin.get(reverse("download-table", args=[run.id, "traffic", format]))
        return found, b"".join(found)

    page, text = answer("csv")
    rows = list(csv.reader(io.StringIO(text.decode())))
    assert (rows[0], rows[2], rows[-1]) == (["destination", "arrived"], ["q1", "1"], ["'=1+1", "1"])
    assert len(rows) == 1502
    assert "traffic.csv" in page["Content-Disposition"]
    assert pq.read_table(io.BytesIO(answer("parquet")[1])).num_rows == 1501
    assert admin.get(reverse("download-table", args=[run.id, "secret", "csv"])).status_code == 404
    assert admin.get(reverse("download-table", args=[run.id, "traffic", "exe"])).status_code == 404


def test_a_result_that_stays_within_ones_scope_is_read_whole(settings, console_without_store, db, browser_of):
    run, narrow = finished(settings, {"queue://orders.a": 41}), browser_of("analyst", "orders.>")
    AnalysisRun.objects.filter(id=run.id).update(kind="dead-letters", request={"destination": "queue://orders.*"})
    assert run.sentence in narrow.get(reverse("run", args=[run.id])).content.decode()
    assert narrow.get(reverse("download-table", args=[run.id, "traffic", "csv"])).status_code == 200


def test_results_are_not_for_somebody_whose_scope_ends_before_them(settings, console_without_store, db, browser_of):
    run = finished(settings, {"orders": 1})
    narrow = browser_of("analyst", "orders.>")
    assert narrow.get(reverse("download-table", args=[run.id, "traffic", "csv"])).status_code == 403
    assert narrow.get(reverse("compare-runs"), {"run": run.id}).status_code == 403


# -- what is kept


def test_a_finished_run_is_asked_again_or_scheduled_with_its_parameters_filled_in(
    settings, console_without_store, db, admin
):
    asked = {"kind": "traffic", "window": "7d", "since_us": 1, "routing": {"version": 3}}
    run = finished(settings, {"queue://orders": 3}, request=asked)
    page = unescape(_text(admin.get(reverse("run", args=[run.id]))))
    form, report = re.findall(r'href="(/analytics/ask/[^"]+|/reports/new[^"]+)"', page)
    assert form == "/analytics/ask/traffic/?window=7d"
    assert '<option value="7d" selected>' in _text(admin.get(form))
    assert report == "/reports/new?kind=traffic&window=7d"
    assert 'name="kind" value="traffic" checked' in " ".join(_text(admin.get(report)).split())


def _text(answer) -> str:
    return answer.content.decode()


def test_old_results_go_and_pinned_ones_stay(settings, console_without_store, db, admin):
    old, kept, young = (finished(settings, {"a": 1}) for _ in range(3))
    admin.post(reverse("pin-run", args=[kept.id]))
    waiting = made()
    AnalysisRun.objects.exclude(id=young.id).update(created=timezone.now() - timedelta(days=91))
    assert run_retention.purge_runs(0) == 0
    assert run_retention.purge_runs(90) == 1
    assert set(AnalysisRun.objects.all()) == {kept, young, waiting}
    assert not (settings.SLUICE.results / str(old.id)).exists()
    assert (settings.SLUICE.results / str(kept.id)).exists()
