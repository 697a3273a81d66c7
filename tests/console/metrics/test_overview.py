"""Test the overview: health, figures, issues, the empty state, and an unavailable broker."""

from django.urls import reverse

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import NodeStatus
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.topology.node_facts import gauges_of
from tests.console.conftest import waiting_tasks


def test_an_empty_broker_offers_the_demo_and_a_snippet_to_start_from(admin, console):
    text = admin.get(reverse("overview")).content.decode()
    assert "No messages yet" in text
    assert "Start the demo" in text
    assert 'send("/queue/hello"' in text


def test_messages_nobody_consumes_need_attention(browser_of, console, wait_for_mirror):
    console.send("/queue/left.alone", "1", "2", "3")
    wait_for_mirror("left.alone", 3)
    text = browser_of("viewer").get(reverse("overview")).content.decode()
    assert "3 messages without consumers" in text
    assert reverse("queue", kwargs={"name": "left.alone"}) in text
    assert "No messages yet" not in text


def test_the_demo_is_handed_to_a_worker_and_recorded(admin, console):
    response = admin.post(reverse("demo"), follow=True)
    assert "Demo starting" in response.content.decode()
    assert AuditEntry.objects.get().action == "demo"
    assert ("console.demo", []) in waiting_tasks("default")


def test_a_broker_that_does_not_answer_is_said_so_on_a_page(admin, console_without_store):
    response = admin.get(reverse("overview"))
    assert response.status_code == 200
    assert "The broker is not responding" in response.content.decode()


def test_what_needs_the_broker_shows_a_page_with_a_reference_when_it_is_away(admin, console_without_store):
    response = admin.get(reverse("routing"))
    assert response.status_code == 503
    text = response.content.decode()
    assert "Broker unavailable" in text
    assert "Reference" in text
    assert "Traceback" not in text


def test_memory_and_store_have_gauges_of_the_fullest_node():
    store = {"used": 50, "message_limit": 200, "machine": 1000, "temp_used": 5, "temp_limit": 10}
    nodes = [
        NodeStatus("a", "b", 0, 0, store=store, memory={"used": 10, "limit": 100}),
        NodeStatus("c", "b", 0, 0, store=store, memory={"used": 90, "limit": 100}),
    ]
    assert {each.label: each.percent for each in gauges_of(nodes)} == {
        "Memory": 90, "Store": 25, "Store (share of host memory)": 5, "Temporary store": 50,
    }  # fmt: skip
    assert gauges_of([NodeStatus("a", "b", 0, 0)]) == []


def test_a_window_without_traffic_says_so_and_offers_a_test_message(browser_of, console, wait_for_mirror):
    console.send("/queue/left.alone", "1", "2", "3", "4")
    wait_for_mirror("left.alone", gateway().depth(Destination.queue("left.alone")))
    an_hour_of_1970 = {"from": 3600, "to": 7200}
    operator, viewer = browser_of("operator"), browser_of("viewer")
    page = operator.get(reverse("queue", kwargs={"name": "left.alone"}), an_hour_of_1970)
    assert page.context["chart"]["quiet"]
    assert "/send/?to=%2Fqueue%2Fleft.alone" in page.content.decode()
    text = viewer.get(reverse("overview"), an_hour_of_1970).content.decode()
    assert "No traffic in this time range." in text
    assert "Send test message" not in text
