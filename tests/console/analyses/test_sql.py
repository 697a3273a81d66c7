"""Test SQL in the console: permissions, what runs may see, saved queries, reports, API."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from analytics.requests.request import TimeWindow
from analytics.results import storage
from analytics.results.storage import JobResult, ResultColumn, ResultTable
from analytics.sql.access import DataAccess, PropertyMask
from analytics.sql.statement import check
from brokerapp.engine.policy.broker_headers import EARLIER_CAUSE
from console import tasks
from console.access.models import Assignment, MaskingRule
from console.access.permissions import restrict
from console.access.roles import Permission, Scope, TokenLimit
from console.analyses.models import AnalysisRun
from console.analyses.questions import describe_parameters, is_readable, readable_runs
from console.analyses.reports import editions
from console.analyses.reports.delivery import is_readable_by
from console.analyses.reports.models import Report
from console.analyses.sql.examples import EXAMPLES
from console.analyses.sql.models import SavedQuery
from console.analyses.sql_access import access_of
from console.audit.models import AuditEntry
from tests.console.conftest import make_user, waiting_tasks

STATEMENT = "SELECT destination, count(*) AS n FROM messages GROUP BY destination"
WINDOW = TimeWindow(1_777_525_200_000_000, 1_777_611_600_000_000)


@pytest.fixture
def workers(console):
    for queue in ("spark", "default"):
        waiting_tasks(queue)


def sent() -> list[dict]:
    return [args[1] for name, args in waiting_tasks("spark") if name == "analytics.tasks.analyse"]


def access(name: str) -> DataAccess:
    return access_of(User.objects.get(username=name))


def saved(owner: str = "ada", **fields) -> SavedQuery:
    return SavedQuery.objects.create(**{"name": "Counts", "statement": STATEMENT, "owner": owner, **fields})


# -- what the views show a user


def test_an_admin_sees_everything_and_an_analyst_no_properties(db):
    for role in ("admin", "analyst", "operator"):
        make_user(role)
    assert access("admin").is_unrestricted
    assert access("operator").is_unrestricted
    assert access("analyst") == DataAccess(properties=None, spared=access("admin").spared)


def test_scopes_of_roles_limit_destinations_and_properties(db):
    user = make_user("analyst", "orders.>", "queue://bills", name="ada")
    Assignment.objects.create(user=user, role="support", scopes=["orders.eu"])
    found = access("ada")
    assert found.destinations == (("orders.>", "queue://bills", "orders.eu"), ("orders.>", "queue://bills"))
    assert found.properties == (("orders.eu",),)


def test_a_token_limits_them_too(db):
    user = make_user("admin", name="ada")
    limit = TokenLimit(frozenset({Permission.SEE, Permission.SQL}), (Scope.parse("orders.>"),))
    restrict(user, limit)
    assert access_of(user).destinations == (("orders.>",),)
    assert access_of(user).properties is None


def test_masking_rules_of_the_roles_with_which_a_user_browses_apply(db):
    rules = [
        ("", "card*", "remove"),
        ("operator", "dlq*", "last4"),
        ("support", "pin", "remove"),
        ("admin", "x", "remove"),
    ]
    for role, pattern, action in rules:
        MaskingRule.objects.create(role=role, place="header", pattern=pattern, action=action, scope="orders.>")
    MaskingRule.objects.create(place="json", pattern="$.card", action="remove")
    MaskingRule.objects.create(place="header", pattern="off", action="remove", active=False)
    user = make_user("operator", name="ada")
    Assignment.objects.create(user=user, role="support", scopes=["orders.eu"])
    found = access("ada")
    assert found.masks[0] == PropertyMask("card*", "remove", "••••")
    assert [each.pattern for each in found.masks] == ["card*", "dlq*", EARLIER_CAUSE]
    assert found.masks_reasons
    assert "message-id" in found.spared


# -- running


def test_a_statement_is_sent_with_what_its_user_may_see_and_is_audited(browser_of, workers):
    client = browser_of("analyst", "orders.>", name="ada")
    response = client.post(
        reverse("run-sql"), {"statement": STATEMENT, "window": "6h", "chart": "bar", "x": "destination", "y": "n"}
    )
    run = AnalysisRun.objects.get()
    assert response["Location"] == reverse("run", args=[run.id])
    [request] = sent()
    assert request["access"] == run.access == access("ada").to_json()
    assert (request["kind"], request["statement"], request["window"], request["chart"]) == (
        "sql",
        STATEMENT,
        "6h",
        "bar",
    )
    entry = AuditEntry.objects.get(action="run SQL")
    assert (entry.who, entry.outcome, entry.after["statement"]) == ("ada", "done", STATEMENT)


def test_a_refused_statement_keeps_what_was_typed_and_is_audited(browser_of, workers):
    client = browser_of("analyst", name="ada")
    response = client.post(reverse("run-sql"), {"statement": "SELECT *\nFROM parquet.`x`", "window": "6h"})
    page = response.content.decode()
    assert response.status_code == 400
    assert "Line 2, column 6" in page
    assert 'data-line="2" data-column="6"' in page
    assert "FROM parquet.`x`" in page
    entry = AuditEntry.objects.get(action="run SQL")
    assert (entry.outcome, entry.before) == ("refused", {"statement": "SELECT *\nFROM parquet.`x`"})
    assert not AnalysisRun.objects.exists()


@pytest.mark.parametrize(("fields", "said"), [
    ({"window": "400d"}, "400d"),
    ({"window": "custom", "from": "soon"}, "nvalid time"),
    ({"window": "custom", "to": "2026-01-01T00:00"}, "no start"),
    ({"window": "custom", "from": "2999-01-01T00:00"}, "must start before it ends"),
    ({"window": "custom", "from": "2026-01-01T00:00", "to": "2026-03-01T00:00"}, "at most 31 days"),
    ({"chart": "pie"}, "is not a chart"),
    ({"chart": "bar", "x": "a"}, "columns of the result"),
])  # fmt: skip
def test_bad_options_are_refused_with_the_rule(fields, said, browser_of, workers):
    response = browser_of("analyst").post(reverse("run-sql"), {"statement": STATEMENT, **fields})
    assert response.status_code == 400
    assert said in response.content.decode()


def test_an_explicit_time_range_is_kept_named_and_shown_again(browser_of, workers):
    given = {"window": "custom", "zone": "Europe/Berlin", "from": "2026-05-01T10:00", "to": "2026-05-01T11:00"}
    client = browser_of("analyst")
    client.post(reverse("run-sql"), {"statement": STATEMENT, **given})
    ends = {"since": "2026-05-01T08:00", "until": "2026-05-01T09:00Z"}
    client.post("/api/v1/sql/runs", {"statement": STATEMENT, **ends}, "application/json")
    expected = tuple(int(datetime(2026, 5, 1, hour, tzinfo=UTC).timestamp() * 1e6) for hour in (8, 9))
    assert [tuple(map(each.request.get, ("since_us", "until_us"))) for each in AnalysisRun.objects.all()] == [
        expected
    ] * 2
    run = AnalysisRun.objects.first()
    assert "1 May 2026" in describe_parameters(run.kind, run.request)
    page = client.get(reverse("sql"), {"run": str(run.id)}).content.decode()
    assert '<option value="custom" selected>' in page
    assert f'name="from_s" value="{expected[0] // 1_000_000}"' in page
    both = client.post("/api/v1/sql/runs", {"statement": STATEMENT, "window": "1h", **ends}, "application/json")
    assert "exclude each other" in both.json()["detail"]


def test_a_saved_query_has_a_time_range_that_ends_now(browser_of, db):
    given = {"statement": STATEMENT, "name": "Counts", "window": "custom", "from": "2026-05-01T10:00"}
    response = browser_of("analyst").post(reverse("save-query"), given)
    assert "a time range that ends now" in response.content.decode()
    assert 'value="2026-05-01T10:00"' in response.content.decode()
    assert not SavedQuery.objects.exists()


def test_a_run_that_waited_gets_the_rights_of_the_moment_when_it_is_sent(browser_of, workers, settings):
    from dataclasses import replace

    from console.analyses import run_service

    settings.SLUICE = replace(settings.SLUICE, analyses_at_once=0)
    client = browser_of("analyst", name="ada")
    for _ in range(2):
        client.post(reverse("run-sql"), {"statement": STATEMENT})
    assert sent() == []
    settings.SLUICE = replace(settings.SLUICE, analyses_at_once=1)
    Assignment.objects.update(scopes=["orders.>"])
    run_service.send_next()
    [request] = sent()
    assert request["access"]["destinations"] == [["orders.>"]]
    Assignment.objects.filter(user__username="ada").update(role="viewer")
    first = AnalysisRun.objects.exclude(sent=None).get()
    run_service.cancel(first, "ada")
    second = AnalysisRun.objects.exclude(pk=first.pk).get()
    assert (second.state, second.reason) == ("failed", "ada no longer has the permission to write SQL queries.")
    assert sent() == []


def test_sql_cannot_be_started_as_another_analysis(browser_of, workers):
    client = browser_of("support")
    response = client.post(reverse("start-run"), {"kind": "sql", "statement": STATEMENT, "window": "1h"})
    assert response.status_code == 409
    api = client.post(
        "/api/v1/analyses/runs", {"kind": "sql", "parameters": {"statement": STATEMENT}}, "application/json"
    )
    assert api.status_code == 409
    assert not AnalysisRun.objects.exists()


# -- who may read results


def done(settings, by: str, seen: DataAccess, **fields) -> AnalysisRun:
    run = AnalysisRun.objects.create(
        kind="sql", title="Counts", request={"kind": "sql", "statement": STATEMENT, "window": "1h"}, asked_by=by,
        access=seen.to_json(), **fields,
    )  # fmt: skip
    rows = pa.table({"destination": ["queue://secret"], "n": [4]})
    columns = (ResultColumn("destination", "destination"), ResultColumn("n", "n", "count"))
    findings = JobResult("1 row of 2 columns.", 9, tables=(ResultTable("result", "Result", columns, rows),))
    storage.save_result(settings.SLUICE.results, str(run.id), findings, window=WINDOW, fresh_until_us=1, seconds=1)
    tasks.run_changed(str(run.id), "done", {"sentence": findings.sentence})
    run.refresh_from_db()
    return run


def test_results_are_read_only_by_those_who_see_as_much(browser_of, workers, settings):
    analyst, scoped = browser_of("analyst"), browser_of("analyst", "orders.>", name="scoped")
    admin, viewer = browser_of("admin"), browser_of("viewer")
    run = done(settings, "analyst", access("analyst"))
    expected = ((analyst, 200), (admin, 200), (scoped, 403), (viewer, 403))
    for client, status in expected:
        for url in (
            reverse("run", args=[run.id]),
            reverse("download-table", args=[run.id, "result", "csv"]),
            f"/api/v1/analyses/runs/{run.id}/result",
        ):
            assert client.get(url).status_code == status, url
        assert ("Counts" in client.get(reverse("runs")).content.decode()) == (status == 200)
    Assignment.objects.filter(user__username="analyst").update(scopes=["orders.>"])
    assert analyst.get(reverse("run", args=[run.id])).status_code == 403, "who lost permissions loses results"
    ada = User.objects.get(username="admin")
    assert is_readable(run, ada)
    assert list(readable_runs(AnalysisRun.objects.filter(pk=run.pk), ada)) == [run]


def test_rules_that_mask_the_same_in_two_scopes_do_not_hide_a_users_own_results(browser_of, workers):
    client = browser_of("analyst", name="ada")
    for scope in ("orders.>", "payments.>"):
        MaskingRule.objects.create(place="header", pattern="card", action="remove", scope=scope)
    response = client.post(reverse("run-sql"), {"statement": STATEMENT})
    [request] = sent()
    assert [pattern for pattern, *_ in request["access"]["masks"]] == ["card"]
    assert client.get(response["Location"]).status_code == 200


def test_a_run_shows_its_statement_and_leads_back_to_the_editor(browser_of, workers, settings):
    admin = browser_of("admin")
    run = done(settings, "admin", access("admin"))
    page = admin.get(reverse("run", args=[run.id])).content.decode()
    assert "GROUP BY destination" in page
    assert f"{reverse('sql')}?run={run.id}" in page
    assert STATEMENT in admin.get(reverse("sql"), {"run": str(run.id)}).content.decode()
    table = admin.get(reverse("download-table", args=[run.id, "result", "parquet"]))
    assert table.getvalue()[:4] == b"PAR1"


# -- saved queries


def test_queries_are_saved_changed_shared_and_deleted(browser_of, db):
    ada, bob, eve = (browser_of("analyst", name=name) for name in ("ada", "bob", "eve"))
    operator = browser_of("operator")
    form = {"name": "Counts", "statement": STATEMENT, "window": "7d", "chart": "bar", "x": "destination", "y": "n"}
    ada.post(reverse("save-query"), form)
    query = SavedQuery.objects.get()
    url = f"{reverse('sql')}?query={query.pk}"
    assert (query.owner, query.window, query.chart) == ("ada", "7d", {"chart": "bar", "x": "destination", "y": "n"})
    assert bob.get(url).status_code == 404
    ada.post(reverse("save-query"), {**form, "query": query.pk, "roles": ["operator"]})
    assert (bob.get(url).status_code, operator.get(url).status_code) == (404, 200)
    ada.post(reverse("save-query"), {**form, "query": query.pk, "everyone": "on"})
    assert "Shared by ada" in eve.get(url).content.decode()
    bob.post(reverse("save-query"), {**form, "query": query.pk, "name": "Mine"})
    assert set(SavedQuery.objects.values_list("owner", "name")) == {("ada", "Counts"), ("bob", "Mine")}
    assert eve.post(reverse("delete-query", args=[query.pk])).status_code == 409
    ada.post(reverse("delete-query", args=[query.pk]))
    assert list(SavedQuery.objects.values_list("owner", flat=True)) == ["bob"]
    assert [each.action for each in AuditEntry.objects.filter(outcome="done").order_by("pk")] == [
        "save SQL query", "change SQL query", "change SQL query", "save SQL query", "delete SQL query",
    ]  # fmt: skip


@pytest.mark.parametrize(("fields", "said"), [
    ({"name": ""}, "Enter a name"),
    ({"name": "counts"}, "already have a query named"),
    ({"statement": "DROP TABLE messages"}, "One SELECT statement"),
    ({"roles": ["viewer"]}, "is not a role to share with"),
    ({"window": "soon"}, "is not a time range"),
])  # fmt: skip
def test_what_cannot_be_saved_is_refused_with_the_reason(fields, said, browser_of, db):
    client = browser_of("analyst", name="ada")
    saved()
    response = client.post(reverse("save-query"), {"name": "New", "statement": STATEMENT, "window": "1h", **fields})
    assert response.status_code == 400
    assert said in response.content.decode()
    assert SavedQuery.objects.count() == 1


def test_a_shared_query_runs_with_the_rights_of_who_runs_it(browser_of, workers):
    query = saved(everyone=True, chart={"chart": "bar", "x": "destination", "y": "n"})
    client = browser_of("analyst", "orders.>", name="bob")
    response = client.post(f"/api/v1/sql/queries/{query.pk}/run", {"window": "1h"}, "application/json")
    assert (response.status_code, response.json()["title"], response.json()["asked_by"]) == (201, "Counts", "bob")
    [request] = sent()
    assert request["access"]["destinations"] == [["orders.>"]]
    assert (request["window"], request["chart"]) == ("1h", "bar")


def test_the_api_has_the_schema_and_saved_queries(browser_of, db):
    client = browser_of("analyst", name="ada")
    schema = client.get("/api/v1/sql/schema").json()
    assert "latency_ms" in [each["name"] for view in schema["views"] for each in view["columns"]]
    wanted = {"name": "Counts", "statement": STATEMENT, "everyone": True}
    made = client.post("/api/v1/sql/queries", wanted, "application/json").json()
    changed = client.put(f"/api/v1/sql/queries/{made['id']}", {**wanted, "name": "More"}, "application/json").json()
    assert (changed["id"], changed["name"], changed["window"]) == (made["id"], "More", "24h")
    assert [each["name"] for each in client.get("/api/v1/sql/queries").json()] == ["More"]
    wrong = client.post("/api/v1/sql/runs", {"statement": "SELECT siez FROM messages"}, "application/json")
    assert (wrong.status_code, wrong.json()["detail"]) == (
        409, "Line 1, column 8: Unknown column 'siez'. Did you mean size?",
    )  # fmt: skip
    assert client.delete(f"/api/v1/sql/queries/{made['id']}").status_code == 204


def test_examples_may_run_and_the_page_shows_views_and_examples(browser_of, db):
    page = browser_of("analyst").get(reverse("sql")).content.decode()
    for example in EXAMPLES:
        check(example.statement)
        assert example.title in page
    assert 'data-insert="latency_ms"' in page
    assert "Properties are hidden" in page


# -- reports


def test_a_report_runs_a_saved_query_with_the_rights_of_its_owner_at_that_time(browser_of, workers):
    client = browser_of("analyst", "orders.>", name="ada")
    query = saved()
    form = {"name": "Morning", "query": [query.pk], f"query.{query.pk}.window": "7d", "rhythm": "daily",
            "time": "07:00", "zone": "UTC", "missed": "once", "keep_days": "90"}  # fmt: skip
    page = client.get(reverse("new-report"), {"query": query.pk}).content.decode()
    assert f'name="query" value="{query.pk}" checked' in " ".join(page.split())
    client.post(reverse("new-report"), form)
    report = Report.objects.get(name="Morning")
    assert report.questions == [{"kind": "sql", "query": query.pk, "window": "7d"}]
    editions.start_edition(report, datetime(2026, 5, 1, 5, tzinfo=UTC))
    [request] = sent()
    assert request["access"]["destinations"] == [["orders.>"]]
    assert request["until_us"] - request["since_us"] == 7 * 86_400_000_000
    assert AnalysisRun.objects.get().title == "Counts"
    others = [make_user("analyst", "orders.>", name="bob"), make_user("admin")]
    assert all(is_readable_by(each, report) for each in others)
    hidden = [make_user("analyst", "bills.>", name="eve"), make_user("viewer")]
    assert not any(is_readable_by(each, report) for each in hidden)


def test_no_export_of_an_edition_has_results_that_its_reader_may_not_see(browser_of, workers, settings):
    viewer, admin = browser_of("viewer"), browser_of("admin")
    report = Report.objects.create(name="Was SQL", zone="UTC", questions=[{"kind": "traffic"}], owner="admin")
    edition = report.editions.create(moment=datetime(2026, 5, 1, tzinfo=UTC), state="done", parts=1)
    done(settings, "admin", access("admin"), edition=edition)
    of = report.pk, edition.pk
    page, api = reverse("export-edition", args=[*of, "html"]), "/api/v1/reports/{}/editions/{}/export?format=html"
    for url in (page, api.format(*of)):
        pages = [client.get(url).content.decode() for client in (admin, viewer)]
        assert ["secret" in each for each in pages] == [True, False]
        assert "The result was deleted or is hidden." in pages[1]


@pytest.mark.parametrize("lost", ["role", "account", "query"])
def test_an_edition_fails_when_its_owner_lost_what_it_needs(lost, browser_of, workers):
    make_user("analyst", name="ada")
    query = saved(owner="bob", everyone=True)
    question = {"kind": "sql", "query": query.pk, "window": "24h"}
    report = Report.objects.create(name="Morning", questions=[question], owner="ada")
    if lost == "role":
        Assignment.objects.filter(user__username="ada").delete()
    elif lost == "account":
        User.objects.filter(username="ada").update(is_active=False)
    else:
        query.delete()
    edition = editions.start_edition(report, datetime(2026, 5, 1, 5, tzinfo=UTC))
    assert edition.state == "failed"
    assert {"role": "no longer has the permission", "account": "no active account", "query": "does not exist"}[
        lost
    ] in edition.reason
    assert sent() == []


def test_who_may_not_write_sql_cannot_schedule_a_query(browser_of, db):
    query = saved(everyone=True)
    client = browser_of("analyst", name="eve")
    Assignment.objects.filter(user__username="eve").update(role="support")
    wanted = {"name": "Morning", "questions": [{"kind": "sql", "query": query.pk}]}
    assert client.post("/api/v1/reports", wanted, "application/json").status_code == 403
    assert not Report.objects.filter(name="Morning").exists()
