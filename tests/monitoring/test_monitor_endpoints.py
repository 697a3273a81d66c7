"""Test the monitoring endpoints: authentication, content, and errors."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import stomp
from django.test import Client, RequestFactory
from django.urls import reverse

from analytics.spans.progress import ExportProgress, spans_folder, write_progress
from brokerapp.config.reader import parse_config
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import SubscriptionStats
from console.access.roles import ROLES_BY_PERMISSION, Permission, Role
from console.accounts.rate_limit import RateLimit
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.exporters.jolokia import operations
from console.exporters.jolokia.client_beans import ConsumerBean
from console.exporters.jolokia.errors import JolokiaError
from console.exporters.options import InvalidOption, MonitorOptions, OriginRule
from console.exporters.server import access_control
from console.exporters.server.urls import urlpatterns
from console.topology.node_facts import gauges_of
from console.ui.formatting import number_format
from tests.console.conftest import make_user
from tests.monitoring.conftest import basic, text
from tests.waiting import wait_until

PAGES = sorted(pattern.name for pattern in urlpatterns if pattern.name not in ("healthz", "readyz"))
JOLOKIA = "/api/jolokia"
BROKER = "org.apache.activemq:type=Broker,brokerName=localhost"


@pytest.mark.parametrize(("is_on", "shown"), [(True, ["sluice_spans_exported 7"]), (False, [])])
def test_metrics_tell_of_the_export_of_spans_while_it_is_on(monitor, console, settings, tmp_path, is_on, shown):
    settings.SLUICE = replace(settings.SLUICE, data=tmp_path, exports_spans=is_on)
    folder = spans_folder(tmp_path, settings.SLUICE.broker_name)
    folder.mkdir(parents=True)
    write_progress(folder, ExportProgress(exported=7))
    lines = text(monitor.get("/metrics")).splitlines()
    assert [each for each in lines if each.startswith("sluice_spans_exported")] == shown


def bean(name, kind="Queue"):
    return f"{BROKER},destinationType={kind},destinationName={name}"


def post(client, body, path=JOLOKIA, **more):
    return client.post(path, json.dumps(body), content_type="application/json", **more)


def size_of(monitor, name):
    """QueueSize as KEDA reads it; None where there is no such queue."""
    return monitor.get(f"{JOLOKIA}/read/{bean(name)}/QueueSize").json().get("value")


@pytest.fixture
def orders(console, monitor):
    queue = Destination.queue("Orders.In")
    if size_of(monitor, queue.name) is not None:
        gateway().purge(queue)
    console.send(queue.stomp, "12345", "123")
    wait_until(lambda: size_of(monitor, queue.name) == 2, "two orders")
    return console


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("headers", [{}, basic("nobody"), {"Authorization": "Basic !"}, {"Authorization": "Bearer x"}])
def test_who_shows_no_credentials_is_challenged_and_never_sent_elsewhere(page, headers, db):
    response = Client(headers=headers).get(reverse(page))
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith('Basic realm="ActiveMQRealm"')
    assert not response.cookies


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("role", ["", *Role])
def test_each_page_is_for_the_roles_with_the_right(page, role, client_of, console):
    response = client_of(role).get(reverse(page))
    allowed = role in ROLES_BY_PERMISSION[Permission.METRICS]
    assert response.status_code == (200 if allowed else 403)
    assert response["Cache-Control"] == "no-store"
    if not allowed:
        assert str(Permission.METRICS) in text(response)
        assert AuditEntry.objects.get().outcome == "denied"


def test_guessing_passwords_is_locked_out(monitor, console):
    wrong = Client(headers=basic("monitor", "guess"))
    for _ in range(6):
        assert wrong.get("/metrics").status_code == 401
    assert Client(headers=basic("monitor")).get("/metrics").status_code == 401


def test_a_changed_password_counts_at_once(monitor, console, django_user_model):
    assert monitor.get("/metrics").status_code == 200
    user = django_user_model.objects.get(username="monitor")
    user.set_password("another")
    user.save()
    assert monitor.get("/metrics").status_code == 401


def test_too_many_requests_are_told_when_to_come_again(monitor, console, monkeypatch):
    monkeypatch.setattr(access_control, "LIMIT", RateLimit(per_second=0.5, burst=1))
    assert monitor.get("/metrics").status_code == 200
    response = monitor.get("/metrics")
    assert (response.status_code, response["Retry-After"]) == (429, "2")


def test_queues_as_telegraf_and_datadog_read_them(monitor, orders):
    response = monitor.get("/admin/xml/queues.jsp")
    assert response["Content-Type"] == "text/xml; charset=utf-8"
    root = ET.fromstring(text(response))
    [queue] = [each for each in root.iter("queue") if each.get("name") == "Orders.In"]
    assert root.tag == "queues"
    numbers = {name: int(value) for name, value in queue.find("stats").attrib.items()}
    assert numbers.keys() == {"size", "consumerCount", "enqueueCount", "dequeueCount"}
    assert (numbers["size"], numbers["enqueueCount"] - numbers["dequeueCount"]) == (2, 2)
    assert queue.find("feed/atom").text == "queueBrowse/Orders.In?view=rss&feedType=atom_1.0"
    assert queue.find("feed/rss").text == "queueBrowse/Orders.In?view=rss&feedType=rss_2.0"


def test_topics_end_with_a_blank_unless_that_is_switched_off(monitor, console, settings):
    console.send("/topic/Prices", "1")

    def names():
        return [each.get("name") for each in ET.fromstring(text(monitor.get("/admin/xml/topics.jsp")))]

    wait_until(lambda: "Prices " in names(), "the topic")
    settings.MONITOR = MonitorOptions(topic_blank=False)
    assert "Prices" in names()


def test_durable_subscriptions_are_listed_active_ones_first(monitor, console):
    for name in ("a", "z"):
        client = stomp.Connection12([("127.0.0.1", console.port)])
        client.connect("ada", "lovelace", wait=True, headers={"client-id": f"c-{name}"})
        console.clients.append(client)
        client.subscribe("/topic/Kept", "1", headers={"activemq.subscriptionName": f"s-{name}"})
    console.send("/topic/Kept", "1")

    def listed():
        return [each.attrib for each in ET.fromstring(text(monitor.get("/admin/xml/subscribers.jsp")))]

    wait_until(lambda: [each["active"] for each in listed()] == ["yes", "yes"], "two of them")
    console.clients[0].disconnect()
    wait_until(lambda: [each["active"] for each in listed()] == ["yes", "no"], "one of them gone")
    assert [each["clientId"] for each in listed()] == ["c-z", "c-a"]
    here, gone = listed()
    assert (here.pop("connectionId") == "NOTSET", gone["connectionId"]) == (False, "NOTSET")
    assert here == {
        "clientId": "c-z", "subscriptionName": "s-z", "destinationName": "Kept", "selector": "", "active": "yes",
    }  # fmt: skip


def test_jolokia_answers_by_path_by_parameter_and_by_body(monitor, orders):
    mbean = bean("Orders.In")
    escaped = mbean.replace(".", "!.")
    for response in (
        monitor.get(f"{JOLOKIA}/read/{escaped}/QueueSize"),
        monitor.get(JOLOKIA, {"p": f"read/{escaped}/QueueSize"}),
        *(
            post(monitor, {"type": "read", "mbean": mbean, "attribute": "QueueSize"}, path)
            for path in (JOLOKIA, f"{JOLOKIA}/", f"{JOLOKIA}/read")
        ),
    ):
        assert response.status_code == 200
        assert response["Content-Type"].startswith("application/json")
        document = response.json()
        assert (document["status"], document["value"]) == (200, 2)
        assert document["request"] == {"type": "read", "mbean": mbean, "attribute": "QueueSize"}


def test_overview_jolokia_and_import_give_the_same_memory_limit(monitor, console):
    wait_until(lambda: gateway().nodes()[0].memory, "the node's memory")
    found = monitor.get(f"{JOLOKIA}/read/{BROKER}/MemoryLimit,MemoryPercentUsage").json()["value"]
    [gauge] = [each for each in gauges_of(gateway().nodes()) if each.label == "Memory"]
    limits = '<memoryUsage><memoryUsage percentOfJvmHeap="70"/></memoryUsage>'
    config = parse_config(f"<broker><systemUsage><systemUsage>{limits}</systemUsage></systemUsage></broker>", {})
    [imported] = [each.why for each in config.report if "percentOfJvmHeap" in str(each)]
    assert found["MemoryLimit"] == gateway().nodes()[0].memory["limit"]
    assert number_format.format_bytes(found["MemoryLimit"]) == gauge.text.partition(" of ")[2]
    assert f"the limit is {found['MemoryLimit']} bytes" in imported


def test_the_bytes_of_a_queue_are_those_of_its_messages(monitor, orders):
    found = monitor.get(f"{JOLOKIA}/read/{bean('Orders.In')}/MemoryUsageByteCount,StoreMessageSize").json()["value"]
    assert found["MemoryUsageByteCount"] == found["StoreMessageSize"] > len("12345123")
    gateway().purge(Destination.queue("Orders.In"))
    assert monitor.get(f"{JOLOKIA}/read/{bean('Orders.In')}/StoreMessageSize").json()["value"] == 0


def test_many_requests_get_as_many_answers_in_their_order(monitor, orders):
    asked = [
        {"type": "read", "mbean": bean("Orders.In"), "attribute": "QueueSize"},
        {"type": "read", "mbean": "java.lang:type=Memory"},
        {"type": "version"},
        {"type": "read", "mbean": bean("*"), "attribute": ["QueueSize"]},
    ]
    documents = post(monitor, asked, f"{JOLOKIA}/read").json()
    assert [each["status"] for each in documents] == [200, 404, 200, 200]
    assert [each["request"] for each in documents] == asked


@pytest.mark.parametrize("body", ["", "{", "[1]", '"read"', "{}", '{"type": 1}'])
def test_what_is_no_request_gets_status_400(body, monitor, console):
    response = monitor.post(JOLOKIA, body, content_type="application/json")
    assert response.status_code == 400
    assert response.content


def test_other_methods_are_not_allowed(monitor, console):
    assert monitor.put(JOLOKIA, "{}").status_code == 405


@pytest.mark.parametrize(
    ("rule", "method", "origin", "status"),
    [
        ("off", "get", "http://evil.example", 200),
        ("lenient", "get", "", 200),
        ("lenient", "get", "http://evil.example", 403),
        ("lenient", "post", "http://grafana.example", 200),
        ("lenient", "post", "http://testserver", 200),
        ("strict", "get", "", 200),
        ("strict", "post", "", 403),
        ("strict", "post", "http://evil.example", 403),
        ("strict", "post", "http://grafana.example", 200),
    ],
)
def test_pages_of_other_origins_are_refused_where_that_is_wanted(
    rule, method, origin, status, monitor, console, settings
):
    settings.MONITOR = MonitorOptions(origin=OriginRule(rule), origins=("http://grafana.example",))
    headers = {"Origin": origin} if origin else {}
    response = monitor.get(JOLOKIA, headers=headers) if method == "get" else post(
        monitor, [{"type": "version"}], headers=headers
    )  # fmt: skip
    assert response.status_code == 200
    document = response.json()
    assert (document[0] if isinstance(document, list) else document)["status"] == status


def test_browsing_needs_its_own_right_and_bodies_another(client_of, orders):
    asked = {"type": "exec", "mbean": bean("Orders.In"), "operation": "browse()"}
    denied = post(client_of("monitor"), asked).json()
    assert (denied["status"], str(Permission.BROWSE) in denied["error"]) == (403, True)
    [first, second] = post(client_of("operator"), asked).json()["value"]
    assert (first["Text"], second["Text"]) == ("12345", "123")
    assert first["JMSDestination"] == "queue://Orders.In"
    assert first["JMSDeliveryMode"] == "PERSISTENT"
    one = {**asked, "operation": "getMessage(java.lang.String)", "arguments": [second["JMSMessageID"]]}
    assert post(client_of("admin"), one).json()["value"]["Text"] == "123"


def test_operations_that_change_are_closed_until_they_are_opened(client_of, orders, settings):
    asked = {"type": "exec", "mbean": bean("Orders.In"), "operation": "purge", "arguments": []}
    operator = client_of("operator")
    assert "SLUICE_MONITOR_EXEC" in post(operator, asked).json()["error"]
    settings.MONITOR = MonitorOptions(exec_all=True)
    assert "POST" in operator.get(f"{JOLOKIA}/exec/{bean('Orders.In')}/purge").json()["error"]
    denied = post(client_of("monitor"), asked).json()
    assert (denied["status"], str(Permission.REMOVE) in denied["error"]) == (403, True)
    assert post(operator, asked).json()["status"] == 200
    assert gateway().browse(Destination.queue("Orders.In"), 0, 10, None).messages == []
    assert [(each.action, each.outcome) for each in AuditEntry.objects.order_by("id")] == [
        ("jmx purge", "denied"), ("jmx purge", "done"),
    ]  # fmt: skip


def test_one_dead_letter_without_an_id_is_none_and_not_all_of_them(client_of, orders, settings):
    settings.MONITOR = MonitorOptions(exec_all=True)
    orders.send("/queue/Orders.In", "x")
    asked = {"type": "exec", "mbean": bean("Orders.In"), "operation": "retryMessage", "arguments": [""]}
    with patch.object(gateway().admin, "resubmit", wraps=gateway().admin.resubmit) as retry:
        post(client_of("operator"), asked)
    assert [each.kwargs for each in retry.call_args_list] == [{"ids": [""]}]


def test_a_right_elsewhere_destroys_no_subscription_here(db):
    kept = SubscriptionStats(SimpleNamespace(topics=(Destination.topic("Kept"),)), None)
    bean = SimpleNamespace(name="s", subject=ConsumerBean((), kept=kept))
    [destroy] = [each for each in operations.OPERATIONS["durable"] if each.name == "destroy"]
    request = RequestFactory().post(JOLOKIA)
    request.user = make_user("operator", "elsewhere.>")
    caller = operations.Caller(request, SimpleNamespace(options=MonitorOptions(exec_all=True)))
    with pytest.raises(JolokiaError, match="topic://Kept"):
        operations._check(caller, bean, destroy)


def test_a_scope_hides_who_uses_what_is_outside_of_it(db, console):
    for name, topics in (("in", ["inside.t"]), ("out", ["outside.t"]), ("both", ["inside.t", "outside.t"])):
        client = stomp.Connection12([("127.0.0.1", console.port)])
        client.connect("ada", "lovelace", wait=True, headers={"client-id": f"c-{name}"})
        console.clients.append(client)
        for topic in topics:
            client.subscribe(f"/topic/{topic}", topic, headers={"activemq.subscriptionName": f"kept-of-{topic}"})
            client.subscribe(f"/queue/{topic}.q", f"{topic}.q")
            client.send(f"/queue/{topic}.sent", "x", headers={"persistent": "true"})
    make_user("operator", "inside.>", name="scoped")
    scoped = Client(headers=basic("scoped"))
    whole = {"type": "read", "mbean": "org.apache.activemq:*"}

    def pages() -> str:
        xml = [f"/admin/xml/{each}.jsp" for each in ("queues", "topics", "subscribers")]
        read = [text(scoped.get(path)) for path in (*xml, "/metrics", "/metrics/v2")]
        return "\n".join([post(scoped, whole).content.decode(), *read])

    inside = ("c-in", "c-both", "inside.t.q", "inside.t.sent", "kept-of-inside.t")
    wait_until(lambda: all(each in pages() for each in inside), "all of the inside")
    assert "outside" not in pages()
    assert "c-out" not in pages()

    def sums() -> dict:
        broker = post(scoped, {**whole, "mbean": BROKER}).json()["value"]
        lists = {name: len(broker[name]) for name in ("QueueSubscribers", "DurableTopicSubscribers")}
        counts = ("CurrentConnectionsCount", "TotalConnectionsCount", "TotalMessageCount", "TotalEnqueueCount")
        return lists | {name: broker[name] for name in counts}

    wait_until(lambda: set(sums().values()) == {2}, "what is inside alone")


def test_a_password_alone_reads_only_numbers_where_a_second_factor_is_needed(client_of, orders, settings):
    settings.IDENTITY = replace(settings.IDENTITY, second_factor=frozenset({Role.OPERATOR}))
    operator = client_of("operator")
    asked = {"type": "exec", "mbean": bean("Orders.In"), "operation": "browse()"}
    assert [post(operator, asked).json()["status"] for _ in range(2)] == [403, 403]
    assert operator.get("/metrics").status_code == 200
    assert post(client_of("admin"), asked).json()["status"] == 200


def test_query_queues_answers_in_text_as_the_web_console_expects(monitor, orders):
    asked = '{"name":"rders","filter":"nonEmpty","sortColumn":"queueSize","sortOrder":"desc"}'
    request = {"type": "exec", "mbean": BROKER, "operation": "queryQueues", "arguments": [asked, 1, 10]}
    found = json.loads(post(monitor, request).json()["value"])
    assert found["count"] == 1
    [(name, row)] = found["data"].items()
    assert "destinationName=Orders.In" in name
    assert row["Name"] == "Orders.In"
    wrong = post(monitor, request | {"arguments": ['{"filter":"x"}', 1, 10]}).json()
    assert (wrong["status"], "nonEmpty" in wrong["error"]) == (500, True)


@pytest.mark.parametrize(
    ("operation", "arguments", "reason"),
    [("explode", [], "No operation explode"), ("browse", [1, 2, 3], "takes 0 or 1")],
)
def test_operations_that_do_not_exist_are_named(operation, arguments, reason, client_of, orders):
    asked = {"type": "exec", "mbean": bean("Orders.In"), "operation": operation, "arguments": arguments}
    document = post(client_of("admin"), asked).json()
    assert (document["status"], reason in document["error"]) == (400, True)


def test_answers_are_compressed_for_who_wants_that(monitor, orders):
    response = monitor.get("/metrics", headers={"Accept-Encoding": "gzip"})
    assert response["Content-Encoding"] == "gzip"


def test_health_and_readiness_need_no_login(console, db):
    assert Client().get("/healthz").content == b"ok"
    response = Client().get("/readyz")
    assert (response.status_code, response.json()) == (
        200, {"ready": True, "store": "ok", "database": "ok", "node": "ok"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"SLUICE_MONITOR_ORIGIN": "maybe"}, "off, lenient, strict"),
        ({"SLUICE_MONITOR_TOPIC_BLANK": "1"}, "on, off"),
        ({"SLUICE_MONITOR_LISTED": "-1"}, "whole number"),
        ({"SLUICE_MONITOR_EXEC": "yes"}, "read, all"),
    ],
)
def test_an_option_that_cannot_mean_anything_is_refused_with_what_can(variables, named):
    with pytest.raises(InvalidOption, match=named):
        MonitorOptions.read(variables)
