"""Test that a user with the scope `scope.inside.>` sees the name of nothing else in any page, answer or frame.

Two halves of a small world exist, alike in all: destinations with messages, definitions, drafts, dead letters, jobs,
alerts, subscriptions, connections. What a page only says back of its own address is no finding.
"""

import asyncio
import json

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from brokerapp.model.definitions import CompositeDestination, ForwardTarget, PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.model.time_series import BrokerPoint
from console.access.permissions import visible
from console.alerts import active_alerts
from console.alerts.delivery.models import AlertFiring, AlertRule
from console.analyses.models import AnalysisRun
from console.audit.trail import AuditActor, recording
from console.broker.gateway import gateway
from console.broker.live.channels import PERMISSIONS
from console.broker.mirror import mirror
from console.broker.snapshot import visible_snapshot
from console.destinations.clients.clients import current_connections
from console.messages.jobs.models import Job, JobOutcome, Template
from console.metrics import charts_history
from console.metrics.charts.chart_data import chart_of
from console.routing.definitions.changes import DefinitionChange, collect_definitions, definitions_by_id
from console.routing.drafts import draft_service
from console.ui.preferences.models import Star
from tests.console.access.test_rights_table import OPERATIONS, PAGES
from tests.console.broker.test_live_socket import socket
from tests.console.conftest import make_user, waiting_tasks
from tests.waiting import wait_until

INSIDE, OUTSIDE = "scope.inside", "scope.outside"
SCOPE = f"{INSIDE}.>"
NOW_S = 1_700_000_000


def make_half(broker, side: str) -> dict:
    """Everything there is, under names of this side; what addresses of pages need to find it."""
    queue, topic, dead = Destination.queue(f"{side}.a"), Destination.topic(f"{side}.t"), f"ActiveMQ.DLQ.{side}.a"
    client = broker.client()
    client.subscribe(f"/topic/{side}.t", "t")
    client.subscribe(f"/queue/{side}.read", "r")
    client.send(f"/queue/{side}.a", "x", persistent="true", receipt="1", correlation=side)
    broker.send(f"/queue/{side}.a", "y", persistent="true")
    broker.send(f"/queue/{dead}", "z", persistent="true", dlqDeliveryFailureCause=f"no {side}")
    log = kept_log(SubscriptionIdentity("c", f"of.{side}", (topic,)))
    made = CompositeDestination(
        Destination.queue(f"{side}.split"), (ForwardTarget(Destination.queue(f"{side}.target")),)
    )
    policy, current = PolicyEntry(Destination.queue(f"{side}.>")), gateway().definitions()
    items = {**definitions_by_id(current), made.id: made, policy.id: policy, **straddling(side)}
    gateway().define(collect_definitions(items.values(), current.version), "ada", f"Define {side}.split")
    other = CompositeDestination(
        Destination.queue(f"{side}.draft"), (ForwardTarget(Destination.queue(f"{side}.target")),)
    )
    draft = draft_service.create_draft("ada", f"Define {side}.draft", [DefinitionChange(None, other)], current.version)
    job = Job.objects.create(name=f"Retry {side}", action="retry", queue=str(queue), asked_by="ada", state="asked")
    rule = AlertRule.objects.create(name=f"{side} is deep", metric="depth", pattern=SCOPE.replace(INSIDE, side),
                                    threshold=1, author="ada")  # fmt: skip
    now = timezone.now()
    about = {"rule": rule, "rule_name": rule.name, "subject": str(queue), "since": now, "fired": now,
             "value": 2, "worst": 2, "sentence": f"{queue} is deep"}  # fmt: skip
    firing = AlertFiring.objects.create(state="firing", **about)
    AlertFiring.objects.create(state="ended", ended=now, **about)
    Template.objects.create(owner=User.objects.get(username="ada"), name=f"For {side}", shared=True,
                            form={"destination": f"/queue/{side}.a"})  # fmt: skip
    AnalysisRun.objects.create(kind="traffic", title="Traffic", request={"destination": str(queue)}, state="done",
                               sentence=f"Most came to {side}.a.", asked_by="ada")  # fmt: skip
    with recording(AuditActor("ada"), "purge", queue):
        pass
    JobOutcome.objects.create(job=job, seq=1, message_id="ID:1", outcome="done",
                              detail=f"queue://{INSIDE}.target, queue://{OUTSIDE}.target")  # fmt: skip
    JobOutcome.objects.create(job=job, seq=2, outcome="refused", detail=f"queue://{OUTSIDE}.target is full")
    AnalysisRun.objects.create(kind="traffic", title="Traffic", asked_by="op", request={"destination": str(queue)},
                               state="done", sentence=f"{queue} is busy", finished=now)  # fmt: skip
    client.send(f"/queue/{side}.a", "later", AMQ_SCHEDULED_DELAY="3600000")
    return {"queue": queue, "log": log.name, "draft": draft.pk, "job": job.id, "rule": rule.pk, "firing": firing.pk,
            "client": client}  # fmt: skip


def straddling(side: str) -> dict[str, CompositeDestination]:
    """What reaches from one half into both: a composite, and half of a ring that lacks one definition to be closed."""
    other = OUTSIDE if side == INSIDE else INSIDE
    ways = {f"{side}.both": (f"{side}.target", f"{other}.target"), f"{side}.ring": (f"{other}.ring2",)}
    made = [
        CompositeDestination(Destination.queue(name), tuple(ForwardTarget(Destination.queue(leg)) for leg in legs))
        for name, legs in ways.items()
    ]
    return {each.id: each for each in made}


def kept_log(subscription: SubscriptionIdentity) -> Destination:
    """The log of a durable subscription, which is made for the module."""
    for each in gateway().run(gateway().admin.subscriptions()):
        if each.subscription.name == subscription.name:
            return each.numbers.destination
    return gateway().run(gateway().admin.create_subscription(subscription))


def make_world(broker) -> dict[str, dict]:
    """Both halves, seen by this process."""
    make_user("admin", name="ada")
    halves = {side: make_half(broker, side) for side in (INSIDE, OUTSIDE)}
    active_alerts.invalidate()
    for side in halves:
        wait_until(
            lambda side=side: (
                (found := mirror().current().stats.get(Destination.queue(f"{side}.a")))
                and found.QueueSize >= 2
                and Destination.topic(f"{side}.t") in mirror().current().stats
            ),
            f"{side} in the picture",
        )
    peers = wait_until(lambda: _by_side(), "the connections")
    for side, half in halves.items():
        half["connection"] = peers[side]
    wait_until(lambda: len(mirror().current().subscriptions) == 2, "the subscriptions")
    return halves


def _by_side() -> dict[str, str]:
    found = {
        side: peer.stats.id
        for peer in current_connections()
        for side in (INSIDE, OUTSIDE)
        if any(each.name == f"{side}.t" for each in peer.destinations)
    }
    nodes = mirror().current().nodes
    told = {each["id"] for node in nodes for each in node.connections}
    return found if len(found) == 2 and told >= set(found.values()) else {}


#: Arguments of addresses that are numbers: those of the other half are tried too.
PARTIAL = {"draft_id", "job_id", "rule_id", "firing_id", "connection_id"}


def _arguments(half: dict) -> dict:
    return {
        "name": f"{half['queue'].name}", "log": half["log"], "draft_id": half["draft"], "job_id": half["job"],
        "rule_id": half["rule"], "firing_id": half["firing"], "connection_id": half["connection"], "seq": 1,
        "number": gateway().definitions().version, "id": "ID:1",
    }  # fmt: skip


def pages_of(half: dict) -> list[tuple[str, dict]]:
    """Every page and part that is read, by its name, with what it is about."""
    of_half = _arguments(half)
    return [
        (page, {name: of_half.get(name, value) for name, value in arguments.items()})
        for page, arguments, method, _ in PAGES
        if method == "get"
    ]


#: Queries under which a page shows more.
QUERIES = {
    "find": ["q=scope"],
    "find-messages": ["q=scope.outside"],
    "palette": ["q=scope"],
    "queue": [f"tab={tab}" for tab in ("consumers", "producers", "routing", "policy", "losses", "history")],
    "topic": ["tab=consumers"],
    "jobs": ["show=asked"],
    "routing": ["view=table", "draft={draft}", "q=scope"],
    "route-preview": ["draft={draft}", f"destination=queue://{INSIDE}.split"],
    "selector-tester": ["near=queue://scope.inside.a&selector=a=1"],
    "send": [f"destination=/queue/{INSIDE}.a"],
    "edit-definition": ["id=compositeQueue:{side}.split", "id=policyEntry:queue://{side}.>"],
    "alerts": ["page=1"],
}


def found_in(client: Client, url: str) -> str | None:
    """What stands around the name of the other half, if the answer has it; what was asked for does not count."""
    return _leak(client.get(url), url)


def found_after(client: Client, url: str, form: dict, is_part: bool) -> str | None:
    """The same of the answer to a form, and of the page that it leads to; `is_part`: to htmx."""
    headers = {"HX-Request": "true"} if is_part else {}
    return _leak(client.post(url, form, headers=headers, follow=True), f"POST {url} {form}")


def told_of(client: Client, method: str, url: str, body: dict | None) -> str | None:
    """The same of an operation of the API."""
    answer = getattr(client, method)(f"/api/v1{url}", body, content_type="application/json")
    return _leak(answer, f"{method.upper()} {url} {body}")


def _leak(response, asked: str) -> str | None:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    text = f"{content.decode()} {response.headers}".replace(asked, "")
    at = text.find(OUTSIDE)
    return None if at < 0 else f"{asked} ({response.status_code}): {text[max(0, at - 80) : at + 60]!r}"


@pytest.fixture(autouse=True)
def nothing_remembered():
    yield
    active_alerts.invalidate()


def test_no_page_and_no_answer_names_what_is_outside_of_the_scope(console, db):
    halves = make_world(console)
    user = make_user("operator", SCOPE, name="op")
    user.assignments.update(extras=["route"])
    Star.objects.create(user=user, subject=str(halves[INSIDE]["queue"]))
    client = Client()
    client.force_login(user)
    urls = []
    for page, arguments in pages_of(halves[INSIDE]):
        url = reverse(page, kwargs=arguments)
        urls.append(url)
        sides = {"draft": halves[INSIDE]["draft"], "side": INSIDE}
        urls += [f"{url}?{each.format(**sides)}" for each in QUERIES.get(page, ())]
        if page in ("routing", "route-preview", "edit-definition", "draft", "job", "edit-alert", "firing", "kept"):
            sides = {"draft": halves[OUTSIDE]["draft"], "side": OUTSIDE}
            urls += [f"{url}?{each.format(**sides)}" for each in QUERIES.get(page, ()) if "{side}" not in each]
    for page, arguments in pages_of(halves[OUTSIDE]):
        if set(arguments) & PARTIAL:
            urls.append(reverse(page, kwargs=arguments))
    version = gateway().definitions().version
    urls += [reverse("routing-version", args=[number]) for number in range(max(1, version - 3), version)]
    for _, method, path, _, _ in OPERATIONS:
        if method == "get":
            urls.append(
                "/api/v1" + path.replace("queue/q", f"queue/{INSIDE}.a").replace("queues/q", f"queues/{INSIDE}.a")
            )
    urls.append(f"/api/v1/jobs/{halves[OUTSIDE]['job']}")
    urls.append("/api/v1/destinations?kind=topic")
    assert [leak for url in dict.fromkeys(urls) if (leak := found_in(client, url))] == []
    listed = client.get(reverse("queues")).content.decode() + client.get(reverse("routing")).content.decode()
    assert f"{INSIDE}.a" in listed
    assert f"{INSIDE}.split" in listed


#: A definition that closes a ring.
RING = {"name": f"{INSIDE}.ring2", "target_kind": "queue", "target_name": f"{INSIDE}.ring", "target_selector": ""}
#: Forms that pages are given, beside an empty one: what names only what is inside, and reaches farther.
FORMS: dict[str, list[dict]] = {
    "act": [{"action": "move", "target": f"queue://{INSIDE}.both", "seq": "{seq}"}, {"action": "retry", "reason": "r"},
            {"action": "copy", "target": f"queue://{INSIDE}.both"},
            {"action": "edit", "target": f"queue://{INSIDE}.both", "look": "1", "reason": "r",
             "property-name": "n", "property-type": "text", "property-value": "1"}],
    "edit-message": [{"destination": f"/queue/{INSIDE}.both", "reason": "r", "body": "b", "encoding": "text"}],
    "send": [{"destination": f"/queue/{INSIDE}.both", "body": "b", "encoding": "text"}],
    "new-definition": [RING],
    "check-definition": [RING],
    "routing-import": [{"text": "<broker xmlns='http://activemq.apache.org/schema/core'/>", "mode": "replace"}],
    "route-preview": [{"destination": f"queue://{INSIDE}.both", "why": f"{INSIDE}.target"}],
    "selector-tester": [{"destination": f"queue://{INSIDE}.both", "selector": "a = 1"}],
    "new-alert": [{"name": "n", "metric": "depth", "pattern": ">", "threshold": "0", "hold": "0"}],
    "test-alert": [{"name": "n", "metric": "depth", "pattern": ">", "threshold": "0", "hold": "0"},
                   {"name": "n", "metric": "depth", "pattern": SCOPE, "threshold": "0", "hold": "0"}],
    "start-run": [{"kind": "traffic", "window": "1h"}],
    "queues-bulk": [{"action": "pause", "name": f"{INSIDE}.a"}],
    "control-job": [{"rate": "5"}],
}  # fmt: skip
#: Operations of the API that are given more than their row of the table says.
BODIES: dict[str, dict] = {
    "send_messages": {"destination": f"/queue/{INSIDE}.both"},
    "preview_route": {"destination": f"queue://{INSIDE}.both"},
    "edit_message": {"destination": f"/queue/{INSIDE}.both", "reason": "r"},
    "start_job": {"action": "move", "queue": f"{INSIDE}.a", "target": f"queue://{INSIDE}.both"},
    "preview_edit": {"action": "edit", "queue": f"{INSIDE}.a", "target": f"queue://{INSIDE}.both", "edit": {}},
    "test_alert_rule": {"metric": "depth", "pattern": ">", "threshold": 0},
}


def test_no_answer_to_a_form_or_an_operation_names_what_is_outside_of_the_scope(console, db):
    halves = make_world(console)
    inside, outside = halves[INSIDE], halves[OUTSIDE]
    user = make_user("operator", SCOPE, name="op")
    user.assignments.update(extras=["route"])
    client = Client()
    client.force_login(user)
    client.raise_request_exception = False
    seq = gateway().browse(inside["queue"], 0, 1, None).messages[0].seq
    way = f"action=copy&target=queue://{INSIDE}.both"
    seen = client.get(reverse("message-action", kwargs={"name": f"{INSIDE}.a"}) + f"?{way}").content.decode()
    assert "goes to 2 queues" in seen
    assert "1 more hidden (no permission)" in " ".join(seen.split())
    leaks = [found_in(client, f"/api/v1/dead-letters/{INSIDE}.a/radius?{way}")]
    for page, arguments, method, _ in PAGES:
        if method != "post" and page not in FORMS:
            continue
        for half in (inside, outside) if set(arguments) & PARTIAL else (inside,):
            known = {**arguments, **{name: value for name, value in _arguments(half).items() if name in arguments}}
            url = reverse(page, kwargs={**known, **({"seq": seq} if "seq" in known else {})})
            for form in [{}, *FORMS.get(page, ())]:
                given = {name: str(value).format(seq=seq) for name, value in form.items()}
                leaks += [found_after(client, url, given, is_part) for is_part in (False, True)]
    for operation, method, path, body, _ in OPERATIONS:
        address = path.replace("queue/q", f"queue/{INSIDE}.a").replace("queues/q", f"queues/{INSIDE}.a")
        address = address.replace("dead-letters/q", f"dead-letters/{INSIDE}.a")
        if method != "get":
            leaks.append(told_of(client, method, address.replace("/1/", f"/{seq}/"), BODIES.get(operation, body)))
    for queue in ("spark", "default"):  # nobody does what was asked of workers
        waiting_tasks(queue)
    assert list(filter(None, leaks)) == []


@pytest.mark.django_db(transaction=True)
async def test_no_frame_names_or_counts_what_is_outside_of_the_scope(console):
    def prepared():
        halves = make_world(console)
        client = Client()
        client.force_login(make_user("operator", SCOPE, name="op"))
        return halves, client.cookies[settings.SESSION_COOKIE_NAME].value

    halves, session = await asyncio.to_thread(prepared)
    outside, inside = halves[OUTSIDE], halves[INSIDE]
    rows = {
        "list": ["scope.outside.a"],
        "connections": [outside["connection"], inside["connection"]],
        "subscribers": [outside["log"], inside["log"]],
        "graph": [str(outside["queue"])],
        "jobs": [str(outside["job"])],
    }
    live, told = socket(session), {}
    await live.connect()
    try:
        for name in PERMISSIONS:
            argument = {
                "list": ":queues",
                "queue": f":{INSIDE}.a",
                "topic": f":{INSIDE}.t",
                "job": f":{outside['job']}",
            }
            topic = name + argument.get(name, "")
            await live.send_json_to({"type": "subscribe", "topic": topic, "rows": rows.get(name, [])})
        async with asyncio.timeout(10):
            while not {"connections", "subscribers", "overview", "alerts"} <= set(told):
                told = {**(await live.receive_json_from()).get("topics", {}), **told}
    finally:
        await live.disconnect()
    # Inside, one connection subscribes and one more sent.
    for name, here, count in (("connections", "connection", 2), ("subscribers", "log", 1)):
        assert told[name]["count"] == count
        assert told[name]["rows"][outside[here]] == {"gone": True}
        assert "gone" not in told[name]["rows"][inside[here]]
    asked = {"list:queues", "subscribers", "graph"}  # their rows were asked for by name
    assert OUTSIDE not in json.dumps({name: cells for name, cells in told.items() if name not in asked})
    assert told["list:queues"]["rows"] == {"scope.outside.a": {"gone": True}}
    assert told["graph"].keys() == {"version"}


def test_charts_and_frames_sum_nothing_of_what_is_outside_of_the_scope(console, db, monkeypatch):
    make_world(console)
    whole = [BrokerPoint(NOW_S, 1_000_000, 9_000, 9_000, 0, 0, 0, 0, 0)]
    monkeypatch.setattr(charts_history, "read_broker_points", lambda *_: whole)
    request = RequestFactory().get("/chart")
    request.user = make_user("operator", SCOPE, name="op")
    seen = visible_snapshot(mirror().current(), visible(request.user))
    assert seen.past[-1].pending == seen.totals.pending < mirror().current().past[-1].pending
    marks = chart_of(request, charts_history.ChartWindow.read({}, NOW_S))["marks"]
    assert all(mark[1] < 100 for mark in marks)
    request.user = make_user("operator", name="all")
    assert chart_of(request, charts_history.ChartWindow.read({}, NOW_S))["marks"][0][1] == 1_000_000


def test_a_denial_names_the_right_what_it_is_for_and_what_one_has_it_for_instead(browser_of):
    client = browser_of("operator", SCOPE)
    said = client.post(reverse("purge", args=[f"{OUTSIDE}.a"])).content.decode()
    assert "delete messages and purge queues" in said
    assert f"queue://{OUTSIDE}.a" in said
    assert f"You have it for {SCOPE}".replace(">", "&gt;") in said
