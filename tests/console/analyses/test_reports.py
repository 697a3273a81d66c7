"""Test reports: due editions, mails, the latest successful edition, permissions and retention."""

from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy

import pyarrow as pa
import pytest
from django.core import mail as outbox
from django.urls import reverse
from django.utils import timezone

from analytics.requests.request import TimeWindow
from analytics.results import charts, storage
from analytics.results.storage import HeadlineFigure, JobResult, ResultColumn, ResultTable
from console import tasks
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.analyses.reports import delivery, editions
from console.analyses.reports.mail import EditionMail
from console.analyses.reports.models import Edition, Report
from console.audit.models import AuditEntry
from tests.console.conftest import make_user, waiting_tasks

DUE = datetime(2026, 5, 1, 5, tzinfo=UTC)
QUESTION = {"kind": "traffic", "window": "24h"}
WINDOW = TimeWindow(1_777_525_200_000_000, 1_777_611_600_000_000)


def made(**fields) -> Report:
    usual = {"name": "Morning", "questions": [QUESTION], "cron": "0 7 * * *", "zone": "Europe/Berlin"}
    return Report.objects.create(**{**usual, "owner": "ada", "addresses": "team@example.org", **fields})


def find(settings, edition: Edition, destination: str = "orders") -> None:
    """Have every analysis of an edition find something, as a worker does."""
    for run in edition.runs.all():
        rows = pa.table({"destination": [destination], "arrived": [1200]})
        columns = (ResultColumn("destination", "Destination"), ResultColumn("arrived", "In", "messages"))
        times = ["2026-05-01T05:00:00Z", "2026-05-01T06:00:00Z"]
        findings = JobResult(
            "1,200 messages arrived.", 4800,
            charts=(("Arrived", charts.over_time(times, {destination: [700, 500]}, "messages per hour")),),
            tables=(ResultTable("traffic", "Traffic", columns, rows),),
            headline=(HeadlineFigure("In all", 8_765_432, "bytes"),),
        )  # fmt: skip
        storage.save_result(
            settings.SLUICE.results, str(run.id), findings, window=WINDOW, fresh_until_us=1, seconds=1,
            levels={"daily": 29, "hourly": 3, "raw_seconds": 60},
        )  # fmt: skip
        tasks.run_changed(str(run.id), "done", {"sentence": findings.sentence})
    edition.refresh_from_db()


@pytest.fixture
def workers(console):
    """Nothing waits for workers at first."""
    for queue in ("spark", "default"):
        waiting_tasks(queue)
    return console


@pytest.fixture(autouse=True)
def no_other_report(db):
    Report.objects.all().delete()


# -- beginning


def test_a_report_begins_when_it_is_due_for_the_time_that_ends_then(workers):
    report = made(due=DUE, questions=[QUESTION, {"kind": "traffic", "window": "1h"}])
    assert editions.start_due_editions(DUE - timedelta(seconds=1)) == []
    [edition] = editions.start_due_editions(DUE + timedelta(seconds=20))
    first, second = edition.runs.order_by("created")
    assert (first.request["since_us"], first.request["until_us"]) == (
        int((DUE - timedelta(days=1)).timestamp() * 1e6),
        int(DUE.timestamp() * 1e6),
    )
    assert second.request["until_us"] - second.request["since_us"] == 3600 * 10**6
    assert [args[0] for _, args in waiting_tasks("spark")] == [str(first.id)], "the other one waits for its turn"
    report.refresh_from_db()
    assert report.due == DUE + timedelta(days=1)
    assert editions.start_due_editions(DUE + timedelta(seconds=40)) == []


def test_a_run_is_skipped_while_the_one_before_is_under_way(workers):
    made(due=DUE)
    editions.start_due_editions(DUE)
    [second] = editions.start_due_editions(DUE + timedelta(days=1))
    assert (second.state, second.reason) == ("skipped", "The previous edition was still running.")
    assert not second.runs.exists()


def test_a_run_of_a_report_whose_worker_ends_is_tried_again_a_few_times(workers):
    made(due=DUE, addresses="")
    [edition] = editions.start_due_editions(DUE)
    run = edition.runs.get()
    for number in range(1, run_service.MOST_TRIES):
        waiting_tasks("spark")
        tasks.run_changed(str(run.id), "starting", {"worker": "spark@one"})
        tasks.run_changed(str(run.id), "lost", {"reason": "The worker's process was killed."})
        run.refresh_from_db()
        assert (run.state, run.tries, bool(run.sent)) == ("queued", number, True)
        assert [args[0] for _, args in waiting_tasks("spark")] == [str(run.id)]
        assert f"attempt {number + 1} of 3. The worker's process was killed." in run_service.cells_of(run)["stage"]
    tasks.run_changed(str(run.id), "starting", {"worker": "spark@one"})
    tasks.worker_started("spark@one", timezone.now().timestamp())
    run.refresh_from_db()
    tasks.process_reports()
    edition.refresh_from_db()
    assert (run.state, edition.state) == ("failed", "failed")
    assert run.reason == "The worker was restarted during the run. Attempts: 3."


def test_a_run_that_was_tried_again_and_is_done_gives_no_reason_any_more(workers, settings):
    made(due=DUE)
    [edition] = editions.start_due_editions(DUE)
    run = edition.runs.get()
    tasks.run_changed(str(run.id), "lost", {"reason": "The worker's process was killed."})
    find(settings, edition)
    run.refresh_from_db()
    assert (run.state, run.reason, run.tries, edition.state) == ("done", "", 1, "done")


def test_a_run_that_was_cancelled_is_not_tried_again(workers):
    made(due=DUE)
    [edition] = editions.start_due_editions(DUE)
    run = edition.runs.get()
    run_service.cancel(run, "ada")
    assert not tasks.run_changed(str(run.id), "lost", {"reason": "The worker's process was killed."})
    run.refresh_from_db()
    assert (run.state, run.tries) == ("cancelled", 0)


@pytest.mark.parametrize(
    ("missed", "states"),
    [("once", [("running", 2)]), ("all", [("running", 0)] * 3), ("skip", [("skipped", 3)])],
)
def test_what_was_missed_in_a_downtime_is_made_up_for_as_configured(missed, states, workers):
    report = made(due=DUE, missed=missed)
    editions.start_due_editions(DUE + timedelta(days=2, hours=5))
    assert [(edition.state, edition.missed) for edition in report.editions.all()] == states
    report.refresh_from_db()
    assert report.due == DUE + timedelta(days=3)


def test_a_report_that_is_switched_off_begins_never(workers, admin):
    report = made(due=DUE)
    admin.post(reverse("change-report", args=[report.pk, "switch"]))
    assert editions.start_due_editions(DUE + timedelta(days=9)) == []
    admin.post(reverse("change-report", args=[report.pk, "switch"]))
    report.refresh_from_db()
    assert report.due > timezone.now(), "it does not make up for the time in which it was off"


def test_an_analysis_that_is_there_no_more_fails_its_edition_with_the_reason(workers):
    report = made(questions=[{"kind": "weather", "window": "1h"}])
    edition = editions.start_edition(report, DUE)
    assert edition.state == "failed"
    assert "'weather' is not a known analysis" in edition.reason


def test_an_edition_whose_beginning_was_interrupted_ends(workers):
    edition = made().editions.create(moment=DUE, parts=2)
    assert not editions.finish_if_complete(edition)
    Edition.objects.update(created=timezone.now() - timedelta(minutes=6))
    edition.refresh_from_db()
    assert editions.finish_if_complete(edition)
    assert (edition.state, edition.reason) == ("failed", "Interrupted at the start.")


# -- mail


def sent(edition: Edition):
    """The mail that went out for an edition, as a client reads it."""
    assert ("console.mail_edition", [edition.pk]) in waiting_tasks("default")
    tasks.mail_edition(edition.pk)
    edition.refresh_from_db()
    return message_from_bytes(outbox.outbox[-1].message().as_bytes(linesep="\r\n"), policy=policy.default)


def test_what_is_found_is_mailed_with_sentences_pictures_tables_files_and_links(workers, settings):
    from dataclasses import replace

    settings.SLUICE = replace(settings.SLUICE, console_url="https://sluice.example.org")
    edition = editions.start_edition(made(), DUE)
    find(settings, edition)
    assert edition.state == "done"
    found = sent(edition)
    assert (edition.mail, edition.mail_detail.endswith("(no mail server configured)")) == ("sent", True)
    assert "for team@example.org" in edition.mail_detail
    assert found["Subject"].endswith("] Morning, 1 May 2026, 07:00 CEST"), "in its own time zone"
    page = found.get_body(("html",)).get_content()
    run_url = f"https://sluice.example.org{reverse('run', args=[edition.runs.get().id])}"
    for part in (
        "1,200 messages arrived.",
        "orders",
        "cid:chart-0@sluice",
        f'href="{run_url}"',
        "2026, 07:00 CEST",
        "8.4 MiB",
    ):
        assert part in page
    text = found.get_body(("plain",)).get_content()
    assert "* 1,200 messages arrived." in text
    assert "In all: 8.4 MiB" in text
    assert f"https://sluice.example.org/reports/{edition.report_id}/editions/{edition.pk}/" in text
    [picture] = [part for part in found.walk() if part.get_content_type() == "image/png"]
    assert picture["Content-ID"] == "<chart-0@sluice>"
    assert picture.get_content().startswith(b"\x89PNG")
    [attached] = found.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == (
        "traffic-traffic.csv", "destination,arrived\r\norders,1200\r\n",
    )  # fmt: skip


def test_it_is_mailed_once(workers, settings):
    edition = editions.start_edition(made(), DUE)
    find(settings, edition)
    sent(edition)
    tasks.mail_edition(edition.pk)
    assert len(outbox.outbox) == 1


def test_people_get_it_by_their_role_when_they_may_see_what_it_is_about(db):
    make_user("analyst", name="ann")
    make_user("analyst", "elsewhere.>", name="narrow")
    make_user("viewer", name="vic")
    make_user("analyst", name="silent")
    from django.contrib.auth.models import User

    for name in ("ann", "narrow", "vic"):
        User.objects.filter(username=name).update(email=f"{name}@example.org")
    assert delivery.recipients(made(roles=["analyst"])) == ["team@example.org", "ann@example.org"]
    local = made(name="b", roles=["analyst"], addresses="", questions=[{**QUESTION, "destination": "elsewhere.a"}])
    assert delivery.recipients(local) == ["ann@example.org", "narrow@example.org"]


def test_a_failure_is_mailed_to_the_owner_and_the_last_good_one_stays_on_top(workers, settings, admin):
    make_user("analyst", name="ada")
    from django.contrib.auth.models import User

    User.objects.filter(username="ada").update(email="ada@example.org")
    report = made()
    good = editions.start_edition(report, DUE)
    find(settings, good)
    sent(good)
    bad = editions.start_edition(report, DUE + timedelta(days=1))
    tasks.run_changed(str(bad.runs.get().id), "failed", {"reason": "The disk is full."})
    bad.refresh_from_db()
    found = sent(bad)
    assert found["To"] == "ada@example.org"
    assert "] Failed: Morning" in found["Subject"]
    assert "The disk is full." in found.get_body(("html",)).get_content()
    page = admin.get(reverse("report", args=[report.pk]))
    assert (page.context["shown"], page.context["trouble"]) == (good, bad)
    text = page.content.decode()
    assert "Showing the last successful edition." in " ".join(text.split())
    assert "1,200 messages arrived." in text
    assert "The disk is full." in text


def test_a_failure_without_an_owner_says_that_nobody_was_told(workers):
    edition = editions.start_edition(made(owner="gone", questions=[{"kind": "weather", "window": "1h"}]), DUE)
    tasks.mail_edition(edition.pk)
    edition.refresh_from_db()
    assert (edition.mail, edition.mail_detail) == ("", "The owner, gone, has no email address.")


def test_a_mail_server_that_does_not_answer_is_asked_again_and_then_no_more(workers, settings, monkeypatch):
    edition = editions.start_edition(made(), DUE)
    find(settings, edition)

    def fails(self):
        raise ConnectionRefusedError("no mail server")

    monkeypatch.setattr(EditionMail, "send", fails)
    for wait in (*delivery.RETRIES, None):
        before = timezone.now()
        tasks.mail_edition(edition.pk)
        edition.refresh_from_db()
        if wait:
            assert edition.mail == "due"
            assert timedelta(seconds=wait) <= edition.mail_due - before < timedelta(seconds=wait + 20)
    assert edition.mail == "failed"
    assert "no mail server" in edition.mail_detail


# -- pages


def test_the_page_shows_the_latest_on_top_with_its_figures_linked_and_the_older_ones_below(workers, settings, admin):
    report = made()
    for day in range(2):
        edition = editions.start_edition(report, DUE + timedelta(days=day))
        find(settings, edition)
    page = admin.get(reverse("report", args=[report.pk]))
    text = page.content.decode()
    assert page.context["shown"] == edition
    assert 'data-figure="figure-0-0"' in text
    assert f'href="{reverse("run", args=[edition.runs.get().id])}"' in text
    assert len(page.context["page"]) == 2
    assert "Every day at 07:00, Europe/Berlin" in text
    assert "1 May 2026, 07:00 CEST" in text
    assert "'unsafe" not in page["Content-Security-Policy"]
    assert "was not archived yet" in text
    assert "4,800 rows read from 29 daily tables, 3 hourly tables, events for the rest" in " ".join(text.split())


def test_the_preview_is_the_mail_and_runs_nothing(workers, settings, admin):
    edition = editions.start_edition(made(), DUE)
    find(settings, edition, destination="<b>orders</b>")
    page = admin.get(reverse("mail-preview", args=[edition.report_id, edition.pk]))
    text = page.content.decode()
    assert "data:image/png;base64," in text
    assert "<b>orders" not in text
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "script-src 'none'" in policy


FORM = {
    "name": "Weekly", "kind": ["traffic"], "traffic.window": "7d", "traffic.destination": "orders.>",
    "rhythm": "weekly", "time": "06:30", "days": ["1", "3"], "zone": "Europe/Berlin", "missed": "skip",
    "roles": ["analyst"], "addresses": "a@example.org, b@example.org", "attach": "on", "keep_days": "30",
}  # fmt: skip


def test_an_analyst_makes_and_changes_a_report_in_words(browser_of, workers):
    ann = browser_of("analyst")
    answer = ann.post(reverse("new-report"), FORM)
    report = Report.objects.get()
    assert answer["Location"] == reverse("report", args=[report.pk])
    assert (report.cron, report.zone, report.missed, report.owner) == (
        "30 6 * * 1,3", "Europe/Berlin", "skip", "analyst",
    )  # fmt: skip
    assert report.questions == [{"kind": "traffic", "window": "7d", "destination": "orders.>"}]
    assert report.due > timezone.now()
    page = ann.get(reverse("edit-report", args=[report.pk])).content.decode()
    assert "Every Monday and Wednesday at 06:30, Europe/Berlin" in page
    assert page.count(" CET") + page.count(" CEST") >= 3, "the next three runs"
    ann.post(reverse("edit-report", args=[report.pk]), {**FORM, "rhythm": "cron", "cron": "*/20 * * * *"})
    report.refresh_from_db()
    assert report.cron == "*/20 * * * *"
    assert [entry.action for entry in AuditEntry.objects.all()][:2] == ["change report", "create report"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": []}, "Choose between 1 and 12 analyses"),
        ({"rhythm": "cron", "cron": "0 7"}, "it has 2 fields, not 5"),
        ({"zone": "Berlin"}, "is not a time zone"),
        ({"addresses": "nobody"}, "is not an email address"),
        ({"traffic.window": "yesterday"}, "is not valid: expected a number and m, h or d"),
        ({"name": ""}, "required"),
        ({"keep_days": "-1"}, "greater than or equal to 0"),
    ],
)
def test_a_form_that_makes_no_sense_says_what_is_wrong_and_keeps_what_was_said(change, words, admin):
    page = admin.post(reverse("new-report"), FORM | change)
    assert page.status_code == 400
    text = page.content.decode().replace("&#x27;", "'")
    assert words in text
    assert "orders.&gt;" in text
    assert not Report.objects.exists()


def test_the_form_shows_the_next_runs_while_one_types(admin):
    part = admin.get(reverse("report-timing"), {"rhythm": "daily", "time": "07:00", "zone": "America/New_York"})
    assert part.content.decode().count("07:00 E") == 3
    assert (
        "is not a time zone"
        in admin.get(reverse("report-timing"), {"rhythm": "never", "zone": "Nowhere"}).content.decode()
    )


def test_each_question_of_a_report_has_its_own_parameters(workers, admin):
    own = {"kind": ["latency", "orphans"], "latency.window": "1h", "latency.percentile": "p99", "orphans.window": "30d"}
    admin.post(reverse("new-report"), FORM | own)
    report = Report.objects.get()
    assert report.questions == [
        {"kind": "latency", "window": "1h", "percentile": "p99"}, {"kind": "orphans", "window": "30d"},
    ]  # fmt: skip
    page = admin.get(reverse("edit-report", args=[report.pk])).content.decode()
    assert '<option value="p99" selected>' in page
    assert 'name="health.minutes" value="5"' in page
    answer = admin.post(reverse("new-report"), FORM | {"name": "2", "kind": ["health"], "health.minutes": "0"})
    assert "a whole number from 1 to 1,440" in answer.content.decode()


def test_a_report_is_run_now_and_not_twice_at_once(workers, admin):
    report = made(cron="")
    for status in (302, 409):
        assert admin.post(reverse("change-report", args=[report.pk, "run"])).status_code == status
    assert report.editions.get().asked_by == "admin"
    page = admin.get(reverse("report", args=[report.pk])).content.decode()
    assert "Generating" in page


# -- rights


def test_a_report_on_data_outside_ones_scope_is_not_there(browser_of, workers):
    whole, local = made(), made(name="Local", questions=[{**QUESTION, "destination": "orders.eu"}])
    narrow = browser_of("analyst", "orders.>")
    text = narrow.get(reverse("reports")).content.decode()
    assert ("Local" in text, "Morning" in text) == (True, False)
    assert narrow.get(reverse("report", args=[whole.pk])).status_code == 404
    assert narrow.get(reverse("report", args=[local.pk])).status_code == 200
    assert narrow.post(reverse("change-report", args=[whole.pk, "delete"])).status_code == 404
    assert narrow.post(reverse("new-report"), {**FORM, "traffic.destination": ""}).status_code == 403
    assert narrow.get("/api/v1/reports").json()[0]["name"] == "Local"
    assert len(narrow.get("/api/v1/reports").json()) == 1


def test_a_reader_reads_and_changes_nothing(browser_of, workers):
    report = made()
    viewer = browser_of("viewer")
    text = viewer.get(reverse("report", args=[report.pk])).content.decode()
    assert "Run now" not in text
    assert "team@example.org" not in text


def test_programs_make_and_run_reports_by_the_same_rules(admin, workers):
    body = {"name": "By API", "questions": [QUESTION], "cron": "0 7 * * 1-5", "zone": "Europe/Berlin"}

    def call(method, path, data=None):
        return getattr(admin, method)(f"/api/v1/reports{path}", data, content_type="application/json")

    answer = call("post", "", body)
    assert (answer.status_code, answer.json()["words"]) == (201, "Monday to Friday at 07:00, Europe/Berlin")
    id = answer.json()["id"]
    refused = call("post", "", {**body, "name": "x", "cron": "nonsense"})
    assert refused.status_code in (400, 409, 422)
    assert "is not a crontab expression" in refused.content.decode()
    assert call("post", f"/{id}/run").status_code == 201
    assert call("get", f"/{id}/editions").json()["items"][0]["state"] == "running"
    assert call("put", f"/{id}", {**body, "is_on": False}).json()["due"] is None
    assert call("delete", f"/{id}").status_code == 204
    assert not Report.objects.exists()


def test_programs_give_the_parameters_of_an_analysis_as_the_form_does(admin, workers):
    question = {"kind": "forecast", "window": "28d", "parameters": {"measure": "depth", "horizon": "6h"}}
    body = {"name": "Depths", "questions": [question]}
    answer = admin.post("/api/v1/reports", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert {"measure": "depth", "horizon": "6h"}.items() <= Report.objects.get().questions[0].items()
    returned = answer.json()
    assert returned["questions"][0]["measure"] == "depth"
    again = {"name": "Depths", "questions": returned["questions"]}
    changed = admin.put(f"/api/v1/reports/{returned['id']}", again, content_type="application/json")
    assert changed.json()["questions"] == returned["questions"], "what was read can be written"
    del question["window"]
    usual = admin.post("/api/v1/reports", {**body, "name": "usual"}, content_type="application/json").json()
    assert usual["questions"][0]["window"] == "28d", "a day is not enough for a forecast"
    question["parameters"] = {"mesure": "depth"}
    refused = admin.post("/api/v1/reports", {**body, "name": "x"}, content_type="application/json")
    assert (
        "forecast has no parameter 'mesure'; it has window, measure, horizon, destination" in refused.json()["detail"]
    )


# -- what is kept


def test_old_editions_go_but_the_last_good_one_and_pinned_runs(workers, settings):
    report = made(keep_days=30)
    old, pinned, good = (editions.start_edition(report, DUE + timedelta(days=day)) for day in range(3))
    for edition in (old, pinned, good):
        find(settings, edition)
    pinned.runs.update(pinned=True)
    folder = run_service.settings.SLUICE.results / str(old.runs.get().id)
    assert folder.exists()
    assert editions.purge_editions(DUE + timedelta(days=20)) == 0
    assert editions.purge_editions(DUE + timedelta(days=200)) == 1
    assert set(report.editions.all()) == {pinned, good}
    assert not folder.exists()
    editions.delete_report(report)
    assert AnalysisRun.objects.get().pinned, "what is pinned outlives its report"


def test_a_report_goes_with_its_editions_only_when_its_name_was_typed(workers, admin):
    report = made()
    where = reverse("change-report", args=[report.pk, "delete"])
    assert f'data-must-equal="{report.name}"' in admin.get(reverse("report", args=[report.pk])).content.decode()
    admin.post(where, {"typed": "Evening"})
    assert Report.objects.filter(pk=report.pk).exists()
    assert not AuditEntry.objects.filter(action="delete report").exists()
    admin.post(where, {"typed": "Morning"})
    assert not Report.objects.filter(pk=report.pk).exists()
