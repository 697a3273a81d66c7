"""Test the REST API on a real broker, and its errors."""

import json

import pytest
from django.test import Client, RequestFactory
from django.utils import timezone

from brokerapp.model.definition_codec import to_json
from brokerapp.model.definitions import CompositeDestination, Definitions, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.version import VERSION
from console.accounts.rate_limit import RateLimit
from console.alerts.delivery.models import AlertFiring
from console.analyses.models import AnalysisRun
from console.api.common import auth
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.messages.jobs.models import Job
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.waiting import wait_until

API = "/api/v1"
Q = Destination.queue


@pytest.fixture(autouse=True)
def plenty(monkeypatch):
    """No test is held up by the limit that keeps others answering."""
    monkeypatch.setattr(auth, "LIMIT", RateLimit(per_second=1000, burst=1000))


@pytest.fixture
def program(db) -> Client:
    """A program with an admin's token for nearly everything."""
    verbs = ["see", "browse", "read", "resubmit", "bulk", "edit", "send", "remove", "pause", "close", "create", "route",
             "draft", "alert", "analyse", "schedule", "users", "audit"]  # fmt: skip
    return caller(token_of("admin", *verbs))


def call(client, method, path, body=None, status=200):
    response = getattr(client, method)(API + path, body, content_type="application/json")
    assert response.status_code == status, response.content
    return response.json() if response.content else None


def test_a_queue_from_its_creation_to_its_end(program, console, wait_for_mirror):
    made = call(program, "post", "/destinations", {"kind": "queue", "name": "api.life"}, 201)
    assert (made["name"], made["QueueSize"]) == ("api.life", 0)
    sent = call(program, "post", "/messages", {"destination": "/queue/api.life", "body": "a", "count": 3}, 201)
    assert (sent["count"], sent["queues"]) == (3, ["queue://api.life"])
    wait_for_mirror("api.life", 3)
    assert call(program, "get", "/destinations/queue/api.life")["QueueSize"] == 3
    assert call(program, "put", "/destinations/queue/api.life/paused", {"paused": True}) == {"paused": True}
    listed = call(program, "get", "/destinations?filter=paused&q=API.L&sort=-QueueSize&size=1")
    assert [each["name"] for each in listed["items"]] == ["api.life"]
    call(program, "put", "/destinations/queue/api.life/paused", {"paused": False})
    assert call(program, "post", "/destinations/queue/api.life/purge") == {"removed": 3}
    assert call(program, "delete", "/destinations/queue/api.life") == {"removed": 0}
    call(program, "get", "/destinations/queue/api.life", status=404)
    done = AuditEntry.objects.filter(via="api", outcome="done").order_by("id").values_list("action", flat=True)
    assert list(done) == ["create", "send", "pause", "resume", "purge", "delete"]


@pytest.fixture
def silent_node(running_broker):
    """The node while it publishes no numbers, as in the second between two snapshots."""
    running_broker.run(running_broker.node._parts.reports._lock.acquire())
    yield
    running_broker.loop.call_soon_threadsafe(running_broker.node._parts.reports._lock.release)


def test_a_destination_is_found_before_its_node_has_published_its_numbers(program, admin, console, silent_node):
    for kind in ("queue", "topic"):
        console.send(f"/{kind}/api.at.once", "a", "b")
        found = call(program, "get", f"/destinations/{kind}/api.at.once")
        assert (found["name"], found["EnqueueCount"]) == ("api.at.once", 2)
    made = call(program, "post", "/destinations", {"kind": "queue", "name": "api.made.at.once"}, 201)
    assert (made["name"], made["QueueSize"]) == ("api.made.at.once", 0)
    assert admin.get("/queues/api.made.at.once/").status_code == 200
    call(program, "get", "/destinations/queue/api.never.made", status=404)


def test_how_the_broker_is_and_was_is_told_as_far_as_one_sees_it(program, console, wait_for_mirror, db):
    for name, count in (("api.watched", 3), ("apart", 1)):
        console.send(f"/queue/{name}", *map(str, range(count)))
        wait_for_mirror(name, count)
    whole = call(program, "get", "/overview")
    assert whole["sentence"].endswith("with messages and without active consumers.")
    assert whole["version"] == VERSION
    found = {each["destination"]: each for each in whole["attention"]}
    assert found["queue://api.watched"]["sentence"] == "3 messages without consumers"
    assert whole["attention_total"] == len(found) >= 2
    narrow = caller(token_of("viewer", "see", scopes=("api.>",)))
    part = call(narrow, "get", "/overview")
    assert ("queue://apart" in str(part), part["totals"]["pending"] < whole["totals"]["pending"]) == (False, True)
    history = call(program, "get", "/history?window=1h&destination=queue://api.watched")
    assert history["end_ms"] - history["start_ms"] == 3_600_000
    assert {"points", "events"} <= history.keys()
    assert call(narrow, "get", "/history?destination=queue://apart", status=403)["detail"]
    assert call(program, "get", "/depths?at=never", status=409)["detail"].startswith("at: ")


def test_messages_are_browsed_in_parts_by_selector_and_one_by_one(program, console, wait_for_mirror):
    for price in ("1", "2", "3"):
        console.send("/queue/api.browse", f"body {price}", price=price)
    wait_for_mirror("api.browse", 3)
    first = call(program, "get", "/queues/api.browse/messages?limit=2")
    assert [each["body"] for each in first["items"]] == ["body 1", "body 2"]
    rest = call(program, "get", f"/queues/api.browse/messages?after={first['next']}")
    assert ([each["body"] for each in rest["items"]], rest["next"]) == (["body 3"], None)
    newest = call(program, "get", "/queues/api.browse/messages?newest=true&limit=2")
    assert [each["body"] for each in newest["items"]] == ["body 2", "body 3"]
    before = call(program, "get", f"/queues/api.browse/messages?newest=true&before={newest['next']}&selector=price > 0")
    assert ([each["body"] for each in before["items"]], before["next"]) == (["body 1"], None)
    [only] = call(program, "get", "/queues/api.browse/messages?selector=price = '2'")["items"]
    assert call(program, "get", f"/queues/api.browse/messages/{only['seq']}") == only
    assert only["headers"]["price"] == "2"


def test_a_body_is_withheld_from_who_may_not_read_it(console, wait_for_mirror, db):
    console.send("/queue/api.secret", "secret")
    wait_for_mirror("api.secret", 1)
    [message] = call(caller(token_of("operator", "see", "browse")), "get", "/queues/api.secret/messages")["items"]
    assert (message["body"], message["size"]) == (None, 6)
    assert message["withheld"]


def test_a_token_for_some_destinations_sees_no_others(console, wait_for_mirror, db):
    for name in ("api.mine", "api.other"):
        console.send(f"/queue/{name}", "x")
        wait_for_mirror(name, 1)
    narrow = caller(token_of("operator", "see", "browse", "remove", scopes=("api.mine",)))
    assert [each["name"] for each in call(narrow, "get", "/destinations")["items"]] == ["api.mine"]
    call(narrow, "get", "/queues/api.other/messages", status=403)
    assert "queue://api.other" in call(narrow, "post", "/destinations/queue/api.other/purge", status=403)["detail"]


def test_what_waits_is_taken_back_only_by_who_may_delete_where_it_goes(program, console, db):
    later = {"destination": "/queue/api.later", "properties": {"AMQ_SCHEDULED_DELAY": "3600000"}}
    call(program, "post", "/messages", later, 201)
    [waits] = call(program, "get", "/scheduled")["items"]
    narrow = caller(token_of("operator", "browse", "remove", scopes=("api.mine",)))
    assert call(narrow, "get", "/scheduled")["items"] == []
    refused = call(narrow, "delete", f"/scheduled/{waits['job']}", status=403)
    assert "remove only for api.mine, not for queue://api.later" in refused["detail"]
    assert call(program, "get", "/scheduled")["total"] == 1
    call(program, "delete", f"/scheduled/{waits['job']}", status=204)
    assert (
        "it was delivered or cancelled" in call(program, "delete", f"/scheduled/{waits['job']}", status=409)["detail"]
    )


def test_only_what_is_a_subscription_is_deleted_as_one(program, console):
    assert (
        "Subscription nobody:nothing not found"
        in call(program, "delete", "/subscriptions/nobody:nothing", status=404)["detail"]
    )


def test_a_job_is_started_watched_and_cancelled(program, console, wait_for_mirror):
    console.send("/queue/api.from", "1", "2")
    wait_for_mirror("api.from", 2)
    wish = {"action": "move", "queue": "api.from", "target": "queue://api.to", "name": "tidy up"}
    job = call(program, "post", "/jobs", wish, 201)
    assert (job["state"], job["expected"], job["queue"]) == ("queued", 2, "queue://api.from")
    assert call(program, "get", "/jobs")["items"][0]["id"] == job["id"]
    assert call(program, "post", f"/jobs/{job['id']}/cancel")["state"] == "cancelled"
    assert call(program, "get", f"/jobs/{job['id']}/outcomes")["total"] == 0
    assert Job.objects.get().name == "tidy up"


def test_a_retry_by_who_may_only_ask_waits_for_approval(program, console, wait_for_mirror, db):
    console.send("/queue/api.dlq", "1")
    wait_for_mirror("api.dlq", 1)
    support = caller(token_of("support", "see", "browse", "resubmit"))
    wish = {"action": "retry", "queue": "api.dlq", "reason": "fixed"}
    assert call(support, "post", "/jobs", wish, 201)["state"] == "asked"
    call(support, "post", "/jobs", {**wish, "action": "remove"}, 403)
    [job] = call(program, "get", "/jobs")["items"]
    assert call(program, "post", f"/jobs/{job['id']}/approve")["state"] == "queued"


def test_an_edit_is_previewed_and_done_by_program_and_beyond_a_few_asked_for(program, console, wait_for_mirror, db):
    console.send("/queue/api.mend", *map(str, range(11)), region="eu")
    wait_for_mirror("api.mend", 11)
    edit = {"set": {"amount": 5, "vip": True}, "remove": ["region"]}
    wish = {"action": "edit", "queue": "api.mend", "edit": edit, "reason": "mended"}
    looked = call(program, "post", "/jobs/preview", wish)
    assert (looked["count"], {each["name"]: each["after"] for each in looked["changes"]}) == (
        11, {"amount": "5", "vip": "true", "region": None},
    )  # fmt: skip
    few = [each["seq"] for each in call(program, "get", "/queues/api.mend/messages")["items"][:2]]
    job = call(program, "post", "/jobs", {**wish, "seqs": few}, 201)
    assert (job["state"], job["done"], job["failed"]) == ("done", 2, 0)
    assert {each["name"]: each["value"] for each in job["edit"]} == {"amount": "5", "vip": "true", "region": "removed"}
    [new, _] = [each["new_id"] for each in call(program, "get", f"/jobs/{job['id']}/outcomes")["items"]]
    items = call(program, "get", "/queues/api.mend/messages")["items"]
    [headers] = [each["headers"] for each in items if each["id"] == new]
    assert (headers["amount"], headers["vip"], "region" in headers) == ("5", "true", False)
    editor = caller(token_of("operator", "see", "browse", "read", "resubmit", "edit"))
    assert call(editor, "post", "/jobs", wish, 201)["state"] == "asked"
    blind = caller(token_of("operator", "see", "browse", "resubmit", "edit", "bulk"))
    assert "read message bodies" in call(blind, "post", "/jobs", wish, 403)["detail"]
    call(program, "post", "/jobs", {**wish, "edit": {"set": {"message-id": "x"}}}, 409)
    call(program, "post", "/jobs", {**wish, "action": "remove"}, 409)


def test_definitions_are_checked_applied_reverted_and_go_out_and_in_as_xml(program, console):
    before = call(program, "get", "/routing")
    composite = {"kind": "compositeQueue", "destination": "queue://api.in", "legs": [{"destination": "queue://api.a"}]}
    changed = dict(before["definitions"])
    changed["virtualDestinations"] = [*changed["virtualDestinations"], composite]
    wanted = {"definitions": changed, "version": before["version"], "comment": "by a program"}
    assert call(program, "post", "/routing/check", wanted)["added"] == ["compositeQueue:api.in"]
    after = call(program, "put", "/routing", wanted)
    conflict = call(program, "put", "/routing", wanted, 409)
    assert conflict["type"] == "urn:sluice:problem:definition-conflict"
    newest = call(program, "get", "/routing/history")[0]
    assert (newest["version"], newest["comment"]) == (after["version"], "by a program")
    xml = program.get(f"{API}/routing/export").content.decode()
    assert "api.in" in xml
    back = call(program, "post", f"/routing/revert/{before['version']}")
    assert back["definitions"]["virtualDestinations"] == before["definitions"]["virtualDestinations"]
    read = call(program, "post", "/routing/import", {"xml": xml})
    assert (read["difference"]["added"], read["version"]) == (["compositeQueue:api.in"], None)
    assert read["report"]
    loop = composite | {"legs": [{"destination": "queue://api.in"}]}
    wrong = {"definitions": {**changed, "virtualDestinations": [loop]}, "version": 1}
    assert "definitions form a loop" in call(program, "post", "/routing/check", wrong, 409)["detail"]
    assert (
        "definitions" in call(program, "post", "/routing/check", {"definitions": {"x": 1}, "version": 1}, 409)["detail"]
    )


def test_every_name_in_an_address_is_described_with_how_it_is_written(program):
    paths = program.get("/api/openapi.json").json()["paths"]
    for path, name in (("/api/v1/subscriptions/{log}/messages", "log"), ("/api/v1/queues/{name}/messages", "name")):
        [found] = [each for each in paths[path]["get"]["parameters"] if each["name"] == name]
        assert "~1" in found["description"]


def test_durable_subscriptions_are_created_listed_and_deleted(program, console):
    wanted = {"client_id": "api", "name": "news", "topics": ["api.news"], "selector": "a = 1"}
    log = call(program, "post", "/subscriptions", wanted, 201)["log"]
    [found] = call(program, "get", "/subscriptions?q=news")["items"]
    assert (found["log"], found["topics"], found["active"]) == (log, ["topic://api.news"], False)
    assert call(program, "get", f"{found['href'].removeprefix('/api/v1')}/messages")["items"] == []
    whole = log.replace("/", "~1")
    assert call(program, "get", f"/subscriptions/{whole}/messages")["items"] == [], "its scheme may stand there"
    assert call(program, "delete", f"/subscriptions/{log.partition('://')[2]}") == {"removed": 0}
    assert call(program, "get", "/subscriptions?q=news")["total"] == 0


def test_connections_nodes_scheduled_and_selectors_can_be_read(program, console, wait_for_mirror):
    console.send("/queue/api.read", "1")
    wait_for_mirror("api.read", 1)
    wait_until(lambda: call(program, "get", "/connections")["total"], "the connection")
    [node] = call(program, "get", "/nodes")
    assert node["listeners"][0]["address"].startswith("stomp://")
    assert call(program, "get", "/scheduled")["items"] == []
    assert call(program, "get", "/destinations/queue/api.read/selectors") == []
    assert call(program, "get", "/destinations/queue/api.read/groups") == []
    assert all(each["question"] for each in call(program, "get", "/analyses"))


def test_users_get_roles(program, console):
    user = call(program, "post", "/users", {"name": "robot"}, 201)
    wanted = {"role": "support", "scopes": ["orders.>"]}
    user = call(program, "post", f"/users/{user['id']}/assignments", wanted, 201)
    [assignment] = user["assignments"]
    assert (assignment["role"], assignment["scopes"]) == ("support", ["orders.>"])
    assert call(program, "delete", f"/users/{user['id']}/assignments/{assignment['id']}")["assignments"] == []
    assert not call(program, "put", f"/users/{user['id']}/active", {"active": False})["active"]
    assert [each["name"] for each in call(program, "get", "/users?q=robo")["items"]] == ["robot"]
    assert "wizard" in call(program, "post", f"/users/{user['id']}/assignments", {"role": "wizard"}, 409)["detail"]


def test_the_audit_trail_is_searched(program, console):
    call(program, "post", "/destinations", {"kind": "topic", "name": "api.audited"}, 201)
    [entry] = call(program, "get", "/audit?object=topic://api.audited")["items"]
    assert (entry["action"], entry["via"], entry["outcome"]) == ("create", "api", "done")
    assert "since" in call(program, "get", "/audit?since=tomorrow", status=409)["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "input"),
    [
        ("get", "/destinations?size=0", None, 422, "query.size"),
        ("get", "/destinations?kind=bag", None, 422, "query.kind"),
        ("post", "/destinations", {"kind": "queue"}, 422, "name"),
        ("post", "/messages", {"destination": "/queue/q", "priority": 10}, 422, "priority"),
        ("get", "/jobs/17", None, 404, None),
    ],
)
def test_a_problem_names_the_input_and_its_rule(method, path, body, status, input, program, console):
    response = getattr(program, method)(API + path, body, content_type="application/json")
    assert response.status_code == status
    if input is not None:
        document = response.json()
        assert response["Content-Type"] == "application/problem+json"
        assert [each["input"] for each in document["errors"]] == [input]
        assert document["errors"][0]["rule"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/queues/never.was/messages", 404, "destination-not-found"),
        ("/queues/never.was/messages?selector=a >", 422, "invalid-selector"),
        ("/destinations/queue/never.was", 404, "not-found"),
    ],
)
def test_what_the_broker_refuses_is_a_problem_with_a_code(path, status, code, program, console):
    assert call(program, "get", path, status=status)["type"] == f"urn:sluice:problem:{code}"


def test_a_pattern_is_no_name_and_broken_json_is_no_body(program, console):
    assert "pattern" in call(program, "post", "/destinations", {"kind": "queue", "name": "a.>"}, 422)["detail"]
    response = program.post(f"{API}/destinations", "{", content_type="application/json")
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")


def test_without_a_store_the_answer_is_503(program, console_without_store):
    assert call(program, "get", "/nodes", status=503)["title"] == "Service Unavailable"


def test_too_many_requests_are_told_when_to_come_again(program, console, monkeypatch):
    monkeypatch.setattr(auth, "LIMIT", RateLimit(per_second=0.1, burst=1))
    call(program, "get", "/me")
    response = program.get(f"{API}/me")
    assert (response.status_code, response["Retry-After"]) == (429, "10")


def test_a_browsers_session_changes_nothing_without_the_pages_token(browser_of, console):
    user = browser_of("admin")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = user.cookies
    body = {"kind": "queue", "name": "api.forged"}
    assert strict.get(f"{API}/me").status_code == 200
    assert strict.post(f"{API}/destinations", body, content_type="application/json").status_code == 403
    assert user.post(f"{API}/destinations", body, content_type="application/json").status_code == 201


def test_the_description_is_complete_and_its_viewer_needs_no_other_server(browser_of, db):
    description = json.loads(Client().get("/api/openapi.json").content)
    assert description["openapi"].startswith("3.")
    operations = [each for path in description["paths"].values() for each in path.values()]
    assert all(each["summary"] and each["description"] for each in operations)
    assert all(each["security"] for each in operations)
    page = browser_of("viewer").get("/api/docs")
    assert "cdn" not in page.content.decode()
    assert "js/features/api_reference.js" in page.content.decode()  # it follows the theme
    assert "unsafe" not in page["Content-Security-Policy"]
    assert Client().get("/api/docs").status_code == 302


def test_nothing_is_kept_by_anybody_on_the_way(program, console):
    assert program.get(f"{API}/me")["Cache-Control"] == "no-store"


def test_an_edited_message_takes_the_place_of_the_old_one(program, console, wait_for_mirror):
    console.send("/queue/api.edit", "old")
    wait_for_mirror("api.edit", 1)
    [message] = call(program, "get", "/queues/api.edit/messages")["items"]
    wanted, address = (
        {"destination": "/queue/api.edit", "body": "new"},
        f"/queues/api.edit/messages/{message['seq']}/edited",
    )
    call(program, "post", address, {**wanted, "reason": ""}, 409)
    call(program, "post", address, {**wanted, "reason": "it was misspelt"})
    found = gateway().browse(Destination.queue("api.edit"), 0, 10, None).messages
    assert [each.body for each in found] == [b"new"]


def test_an_alert_rule_is_made_tried_silenced_and_deleted(program, console):
    rule = {"name": "deep", "metric": "depth", "threshold": 100, "pattern": "api.>", "webhook": ""}
    refused = call(program, "post", "/alerts/rules", {**rule, "metric": "mood"}, 422)["detail"]
    assert "metric" in refused
    assert "'depth'" in refused
    assert "'failed-backups'" in refused
    made = call(program, "post", "/alerts/rules", rule, 201)
    assert (made["sentence"], bool(made["secret"])) == ("depth of api.> above 100 messages", True)
    assert "secret" not in call(program, "get", "/alerts/rules")[0]
    assert call(program, "post", "/alerts/test", rule)["cannot"] == ""
    step = call(program, "post", f"/alerts/rules/{made['id']}", {"action": "silence", "hours": 8})
    assert step["silenced_until"] > timezone.now().isoformat()
    changed = call(program, "put", f"/alerts/rules/{made['id']}", {**rule, "below": True, "hold": 60})
    assert changed["sentence"] == "depth of api.> below 100 messages for 1 min"
    call(program, "delete", f"/alerts/rules/{made['id']}", status=204)
    assert call(program, "get", "/alerts/firings?state=firing")["total"] == 0
    done = AuditEntry.objects.filter(via="api", outcome="done", action__endswith="alert rule").order_by("id")
    assert [each.action.split()[0] for each in done] == ["create", "silence", "change", "delete"]


def test_firings_about_what_one_does_not_see_are_not_told(console, db):
    now = timezone.now()
    for subject in ("queue://api.mine", "queue://api.theirs", "broker"):
        AlertFiring.objects.create(rule_name="deep", subject=subject, state="firing", since=now, value=1, worst=1)
    narrow = caller(token_of("operator", "see", scopes=("api.mine",)))
    found = call(narrow, "get", "/alerts/firings")["items"]
    assert {each["subject"] for each in found} == {"queue://api.mine", "broker"}
    hidden = AlertFiring.objects.get(subject="queue://api.theirs")
    call(narrow, "get", f"/alerts/firings/{hidden.pk}/deliveries", status=404)


def test_a_draft_is_begun_compared_asked_for_and_applied(program, console):
    now = call(program, "get", "/routing")
    wanted = now["definitions"]
    composite = to_json(
        Definitions(virtual_destinations=(CompositeDestination(Q("api.draft"), (ForwardTarget(Q("api.leg")),)),))
    )
    wanted["virtualDestinations"] = composite["virtualDestinations"]
    draft = call(
        program, "post", "/routing/drafts", {"name": "d", "definitions": wanted, "version": now["version"]}, 201
    )
    address = f"/routing/drafts/{draft['id']}"
    diff = call(program, "get", f"{address}/diff")
    assert (len(diff["difference"]["added"]), diff["can_apply"], diff["clashes"]) == (1, True, [])
    assert call(program, "post", f"{address}/ask", {"text": "please"})["state"] == "asked"
    assert call(program, "get", f"{address}/remarks")[-1]["text"] == "please"
    applied = call(program, "post", f"{address}/apply", {})
    assert (applied["state"], applied["applied_version"]) == ("applied", now["version"] + 1)
    assert call(program, "get", "/routing/drafts?state=applied")["total"] == 1
    call(program, "post", f"{address}/drop", {}, 409)
    call(program, "post", f"/routing/revert/{now['version']}")


def test_dead_letters_come_in_groups_with_the_way_back_of_each(program, console, wait_for_mirror):
    console.send("/queue/DLQ.api", "1", dlqDeliveryFailureCause="boom", **{"original-destination": "/queue/api.home"})
    wait_for_mirror("DLQ.api", 1)
    found = call(program, "get", "/dead-letters?q=boom")
    [group] = found["items"]
    assert (group["count"], group["cause"], group["queue"]) == (1, "boom", "queue://DLQ.api")
    assert group["claimed"] == 1, "a client sent it there"
    radius = call(program, "get", f"/dead-letters/DLQ.api/radius?selector={group['selector']}")
    assert (radius["of"], radius["looked_at"]) == (1, 1)
    moved = call(program, "get", "/dead-letters/DLQ.api/radius?action=move&target=queue://api.home")
    assert moved["blasts"][0]["reaches"][0]["queue"] == "queue://api.home"


def test_few_messages_are_dealt_with_at_once(program, console, wait_for_mirror):
    console.send("/queue/api.few", "1")
    wait_for_mirror("api.few", 1)
    [message] = call(program, "get", "/queues/api.few/messages")["items"]
    job = call(program, "post", "/jobs", {"action": "remove", "queue": "api.few", "seqs": [message["seq"]]}, 201)
    assert (job["state"], job["done"]) == ("done", 1)


def test_masking_rules_keep_their_order(program, console):
    rule = {"role": "support", "place": "header", "pattern": "card*", "action": "remove"}
    assert "colour" in call(program, "post", "/masking", {**rule, "place": "colour"}, 409)["detail"]
    first, second = (call(program, "post", "/masking", {**rule, "comment": text}, 201) for text in "ab")
    call(program, "post", f"/masking/{second['id']}", {"action": "first"})
    assert [each["comment"] for each in call(program, "get", "/masking")] == ["b", "a"]
    assert call(program, "put", f"/masking/{first['id']}", {**rule, "comment": "c"})["comment"] == "c"
    assert call(program, "post", f"/masking/{first['id']}", {"action": "switch"})["active"] is False
    call(program, "delete", f"/masking/{first['id']}", status=204)


def test_a_group_gives_its_members_a_role(program, console):
    group = call(program, "post", "/groups", {"name": "night shift"}, 201)
    call(program, "post", "/groups", {"name": "night shift"}, 409)
    user = call(program, "post", "/users", {"name": "nora"}, 201)
    address = f"/groups/{group['id']}"
    given = call(program, "post", f"{address}/assignments", {"role": "support", "scopes": ["api.>"]}, 201)
    assert call(program, "put", f"{address}/members/{user['id']}", {"member": True}) == {"member": True}
    [shown] = [each for each in call(program, "get", "/groups") if each["id"] == group["id"]]
    assert (shown["members"], shown["assignments"][0]["role"]) == ([user["id"]], "support")
    call(program, "delete", f"{address}/assignments/{given['assignments'][0]['id']}")
    call(program, "delete", address, status=204)


def test_a_program_tries_a_route_a_selector_and_ends_a_connection(program, browser_of, console):
    other = console.client()
    other.subscribe("/queue/tried", "1")
    console.send("/queue/tried", "x")
    way = call(program, "post", "/routing/preview", {"destination": "tried", "headers": {"n": "5"}})
    assert [each["destination"] for each in way["places"]] == ["queue://tried"]
    said = call(program, "post", "/routing/selector", {"selector": "n > 3 AND m = 1", "headers": {"n": "5"}})
    assert [(each["text"], each["value"]) for each in said["clauses"]] == [("n > 3", True), ("m = 1", None)]
    call(program, "post", "/routing/selector", {"selector": "n >"}, 422)

    def connections():
        return [
            each for each in call(program, "get", "/connections")["items"] if "/queue/tried" in each["subscriptions"]
        ]

    [mine] = wait_until(connections, "the connection that subscribed")
    call(browser_of("operator", "elsewhere.>", name="e"), "delete", f"/connections/{mine['id']}", status=404)
    call(program, "delete", f"/connections/{mine['id']}", status=204)
    wait_until(lambda: not other.is_connected(), "its end")


def test_a_program_helps_a_user_who_cannot_log_in(program, db):
    user = call(program, "post", "/users", {"name": "locked"}, 201)
    way = call(program, "post", f"/users/{user['id']}/way-in", {"way": "password"})
    assert Client().login(username="locked", password=way["password"], request=RequestFactory().post("/login/"))
    assert call(program, "post", f"/users/{user['id']}/way-in", {})["link"].startswith("http")
    call(program, "post", f"/users/{user['id']}/unlock")
    refused = call(program, "delete", f"/users/{user['id']}/second-factor", status=409)
    assert "does not use two-factor" in refused["detail"]


def test_a_message_is_found_and_what_became_of_it_is_told(program, console, wait_for_mirror):
    call(program, "post", "/destinations", {"kind": "queue", "name": "api.found"}, 201)
    sent = {"destination": "/queue/api.found", "body": "x", "properties": {"order": "a-4711"}}
    call(program, "post", "/messages", sent, 201)
    wait_until(lambda: call(program, "get", "/search?q=order:a-4711")["hits"], "the message")
    [hit] = call(program, "get", "/search?q=order:a-4711")["hits"]
    assert (hit["place"], hit["why"], hit["state"]) == ("queue://api.found", "order", "waiting")
    assert call(program, "get", "/search?q=nobody-has-this")["hits"] == []
    assert "no trace is recorded" in call(program, "get", "/messages/ID:none:1/journey", status=404)["detail"]


def test_a_finding_names_what_nobody_reads(program, console, wait_for_mirror):
    call(program, "post", "/destinations", {"kind": "queue", "name": "Consumer.Z.VirtualTopic.Unread"}, 201)

    def named() -> list[str]:
        return [each["destination"] for each in call(program, "get", "/routing/findings")]

    wait_until(lambda: "queue://Consumer.Z.VirtualTopic.Unread" in named(), "the finding")


def test_a_run_is_pinned_and_a_trial_shows_no_definitions(program, db):
    run = AnalysisRun.objects.create(kind="whatif", title="t", asked_by="a", request={"draft": "1"}, trial={"x": 1})
    shown = call(program, "put", f"/analyses/runs/{run.id}/pin", {"pinned": True})
    assert (shown["pinned"], shown["request"]) == (True, {"draft": "1"})
    narrow = caller(token_of("admin", "see", "analyse", scopes=("shop.>",)))
    assert call(narrow, "get", "/analyses/runs")["items"] == []
    call(narrow, "get", f"/analyses/runs/{run.id}", status=403)
