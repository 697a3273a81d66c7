"""Test topology: this broker among others, its connectors, and why a message is not forwarded."""

import dataclasses
import re

import pytest
from django.urls import reverse

from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import (
    BridgeConnectionState,
    BridgeConnectionStats,
    BridgeStats,
    ConnectorStats,
    DemandStats,
    InboundBridgeStats,
    NetworkStats,
)
from brokerapp.model.stats_records import NodeStatus
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import ATTRIBUTES, options_of
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.live.channels import LiveChannel, overview_cells
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot, apply_tick, initial_snapshot
from console.destinations.clients.clients import current_connections
from console.metrics import health
from console.topology.bridge_reasons import BridgeQuestion, bridge_reasons
from console.topology.diagram import build_diagram
from console.topology.forms import PROPERTY_HELP, ConnectorForm
from tests.console.conftest import make_user
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

QUEUE = Destination.queue("orders.eu")
UP = BridgeConnectionStats(["tcp://b:61613"], BridgeConnectionState.CONNECTED, "b", "tcp://b:61613")
WANTED = DemandStats("queue://orders.eu", priority=-5, path=["b"], consumers=["c:1:1"])


def terms(**more) -> object:
    options = {name: value for name, value in more.items() if name not in ("excluded", "dynamic", "static")}
    lists = {
        "excluded": more.get("excluded", ()), "dynamically_included": more.get("dynamic", ()),
        "statically_included": more.get("static", ()),
    }  # fmt: skip
    lists = {name: tuple(map(Destination.parse, texts)) for name, texts in lists.items()}
    return options_of(NetworkConnector("n", "tcp://b:61613", **lists, options=tuple(options.items())))[0]


PICKY = dataclasses.replace(WANTED, selector="region = 'eu'")


# -- why


@pytest.mark.parametrize(
    ("given", "way", "demand", "asked", "said"),
    [
        ({}, BridgeConnectionStats(["x"], BridgeConnectionState.STOPPED), [], BridgeQuestion(QUEUE), "is stopped"),
        (
            {},
            BridgeConnectionStats(["x"], BridgeConnectionState.WAITING, last_error="refused"),
            [],
            BridgeQuestion(QUEUE),
            "(waiting): refused",
        ),
        (
            {"excluded": ["orders.>"]},
            UP,
            [WANTED],
            BridgeQuestion(QUEUE),
            "Excluded by excludedDestinations: queue://orders.>",
        ),
        (
            {"dynamic": ["topic://>"]},
            UP,
            [WANTED],
            BridgeQuestion(QUEUE),
            "Not in dynamicallyIncludedDestinations: topic://>",
        ),
        ({"staticBridge": "true"}, UP, [WANTED], BridgeQuestion(QUEUE), "staticBridge=true"),
        ({}, UP, [], BridgeQuestion(QUEUE), "b reports no consumers of queue://orders.eu"),
        ({"dynamicOnly": "true"}, UP, [], BridgeQuestion(QUEUE), "dynamicOnly=true"),
        ({}, UP, [WANTED], BridgeQuestion(QUEUE, {}, ("b",)), "It came from b"),
        ({}, UP, [WANTED], BridgeQuestion(QUEUE, {}, ("c",)), "The limit is 1 (messageTTL)"),
        ({}, UP, [PICKY], BridgeQuestion(QUEUE, {"region": "us"}), "No consumer's selector"),
        ({"bridgeTempDestinations": "false"}, UP, [], BridgeQuestion(Destination.parse("temp-queue://x")), "Temporary"),
        ({}, UP, [], BridgeQuestion(Destination.topic("ActiveMQ.Advisory.Connection")), "Advisories"),
    ],
)
def test_what_keeps_a_message_here_is_named_and_nothing_is_said_behind_it(given, way, demand, asked, said):
    found = bridge_reasons(asked, terms(**given), way, demand, 0)
    assert found[-1].allows is False
    assert said in found[-1].sentence
    assert not any(each.allows is False for each in found[:-1])


def test_what_crosses_is_told_so_and_that_consumers_here_come_first():
    *_, rivals, last = bridge_reasons(BridgeQuestion(QUEUE, {}, ()), terms(), UP, [WANTED], own=2)
    assert "2 local consumers of the queue have priority" in rivals.sentence
    assert (last.allows, last.sentence) == (
        True,
        "It is forwarded to b when it reaches the head of the queue.",
    )
    excluded = bridge_reasons(BridgeQuestion(QUEUE, {}), terms(excluded=[">"], static=["orders.eu"]), UP, [WANTED], 0)
    assert excluded[-1].allows is True


# -- the picture


def network() -> NetworkStats:
    bridge = BridgeStats("out", "a", "b", forwarded=1204, queued=3, demand=2)
    way = dataclasses.replace(UP, bridges=[bridge])
    down = BridgeConnectionStats(
        ["tcp://c:61613"], BridgeConnectionState.WAITING, last_error="nobody listens", attempts=4
    )
    here = InboundBridgeStats("d", "conn-1", "d", "tcp://d:5", "bridge", 1, received=7)
    return NetworkStats([ConnectorStats("to-b", "static:(…)", True, ways=[way, down])], [here])


def test_the_picture_has_a_box_for_each_broker_and_a_line_for_each_link():
    members = (
        MemberStatus("a", "x", MemberState.SELF, False), MemberStatus("b", "tcp://b:1", MemberState.UP, True, taken=5),
    )  # fmt: skip
    cluster = ClusterStatus("a", "b", False, True, "", "r", 1, 1, members)
    node = NodeStatus("n1", "a", 0, 0, network=network().to_json())
    found = build_diagram("a", [node], cluster)
    lines = {box.name or box.address: [(each.kind, each.cells["level"]) for each in box.links] for box in found.boxes}
    assert lines == {
        "b": [("bridge", "good"), ("cluster", "good")],
        "d": [("incoming", "good")],
        "tcp://c:61613": [("bridge", "act")],
    }
    assert [each.name for each in found.left] == ["d"]
    assert found.cells["w0.0.0.out#forwarded"] == "1,204"
    assert found.cells["w0.0.1#why"] == "nobody listens (4 attempts)"
    hidden = build_diagram("a", [node], cluster, sees_all=False)
    assert (hidden.cells["w0.0.0.out#forwarded"], hidden.cells["mb#says"]) == ("–", "up")
    assert found.cells["mb#says"] == "5 received"
    assert hidden.shape == found.shape != build_diagram("a", [], cluster).shape


def test_a_form_keeps_what_it_does_not_show_and_a_password_that_is_not_typed():
    former = {"name": "n", "uri": "tcp://b:1", "durable": ["topic://t"],
              "options": {"userName": "u", "password": None, "messageTTL": "3", "odd": "1"}}  # fmt: skip
    form = ConnectorForm.of(former)
    assert (form.user, form.has_password, form.options["messageTTL"]) == ("u", True, "3")
    posted = {"uri": "tcp://b:2", "user": "u", "option-messageTTL": "", "excluded": "queue://x\n\n topic://y "}
    made = ConnectorForm.read(posted, former).definition(former)
    assert made == {"name": "n", "uri": "tcp://b:2", "excluded": ["queue://x", "topic://y"], "durable": ["topic://t"],
                    "options": {"odd": "1", "userName": "u", "password": None}}  # fmt: skip


def test_the_form_has_every_property_there_is():
    form = ConnectorForm()
    shown = {each.name for each in (form.duplex, *form.properties)}
    assert shown == ATTRIBUTES.keys() - {"userName", "password", "remoteUserName", "remotePassword"}
    assert PROPERTY_HELP.keys() <= shown


def test_a_default_that_activemq_does_not_have_is_named():
    shown = {each.name: each for each in ConnectorForm().properties}
    for name, ours, theirs in [
        ("decreaseNetworkConsumerPriority", "true", "ActiveMQ before 5.18: false."),
        ("alwaysSyncSend", "false", "ActiveMQ: true."),
    ]:
        assert shown[name].default == ours
        assert shown[name].explanation.endswith(theirs)


# -- with brokers


@pytest.fixture(scope="module")
def other(store_url):
    """Another broker."""
    running = RunningNode(default_config("topology-other", 0), store_url)
    yield running
    running.stop()


def same_connections() -> bool:
    """Whether nodes count the connections that are listed: not the node's own end of a bridge."""
    nodes = gateway().nodes()
    counted = [each["id"] for node in nodes for each in node.connections]
    listed = [each.stats.id for each in current_connections()]
    return sorted(counted) == sorted(listed) and sum(node.connected["all"] for node in nodes) == len(listed)


def text(response) -> str:
    return response.content.decode()


def test_a_connector_is_made_watched_explained_changed_stopped_and_removed(console, other, admin):
    page = text(admin.get(reverse("topology")))
    assert "Standalone broker" in page
    assert "Not part of a cluster" in page
    form = text(admin.get(reverse("new-connector")))
    assert 'placeholder="static:(tcp://host:61616)"' in form
    assert 'value="static:' not in form
    assert form.index('name="option-duplex"') < form.index("<strong>Properties")
    assert form.count('name="option-duplex"') == 1
    empty = admin.post(reverse("new-connector"), {"name": "to-other", "uri": ""})
    assert empty.status_code == 400
    wrong = admin.post(reverse("new-connector"), {"name": "to-other", "uri": "nonsense"})
    assert wrong.status_code == 400
    assert "is not a broker address" in text(wrong)
    uri = f"static:(tcp://127.0.0.1:{other.port})?initialReconnectDelay=100"
    made = admin.post(reverse("new-connector"), {"name": "to-other", "uri": uri, "excluded": "queue://private.>"})
    assert made["Location"] == reverse("connector", args=["to-other"])
    assert AuditEntry.objects.get(action="create connector", outcome="done").after["excluded"] == ["queue://private.>"]

    wait_until(lambda: "topology-other" in text(admin.get(reverse("topology"))), "the bridge on the page")
    wait_until(same_connections, "what nodes count is what the list of connections shows")
    page = text(admin.get(reverse("connector", args=["to-other"])))
    assert "No consumers on" in page
    why = text(admin.get(reverse("connector", args=["to-other"]) + "?destination=private.x"))
    assert "Excluded by excludedDestinations: queue://private.&gt;." in why

    admin.post(reverse("switch-connector", args=["to-other", "stop"]))
    assert "stopped" in text(admin.get(reverse("topology")))
    assert "The connector to-other is stopped" in text(
        admin.get(reverse("connector", args=["to-other"]) + "?destination=orders")
    )
    admin.post(reverse("edit-connector", args=["to-other"]), {"uri": uri, "option-messageTTL": "2"})
    [found] = gateway().run(gateway().admin.networks.stats()).connectors
    assert (found.running, found.definition["options"]) == (False, {"messageTTL": "2"})
    assert admin.post(reverse("remove-connector", args=["to-other"]), {"typed": "x"}).status_code == 400
    admin.post(reverse("remove-connector", args=["to-other"]), {"typed": "to-other"})
    wait_until(lambda: "Standalone broker" in text(admin.get(reverse("topology"))), "no connector")
    assert list(AuditEntry.objects.filter(object="to-other", outcome="done").values_list("action", flat=True)) == [
        "remove connector", "change connector", "stop connector", "create connector",
    ]  # fmt: skip


def test_programs_do_the_same(console, other, admin):
    def call(method, path, body=None, status=200):
        answer = getattr(admin, method)(f"/api/v1/networks{path}", body, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None

    uri = f"tcp://127.0.0.1:{other.port}"
    options = {"duplex": True, "password": "s", "userName": "u"}
    new = {"name": "api", "uri": uri, "options": options, "durable": ["topic://d"]}
    made = call("post", "/connectors", new, 201)
    assert made["definition"]["options"]["password"] is None
    assert "durableDestinations has no effect" in made["warnings"][0]
    assert "durableDestinations has no effect" in text(admin.get(reverse("connector", args=["api"])))
    call("post", "/connectors", new, 409)
    [listed] = call("get", "")["connectors"]
    assert (listed["name"], listed["duplex"]) == ("api", True)
    assert call("put", "/connectors/api/running", {"running": False})["running"] is False
    changed = call("put", "/connectors/api", {"uri": uri, "options": {"userName": "u", "password": None}})
    assert changed["duplex"] is False
    assert call("get", "/connectors/api/demand") == []
    [way] = call("get", "/connectors/api/why?destination=orders")
    assert "is stopped" in way["reasons"][-1]["sentence"]
    call("get", "/cluster", status=404)
    call("delete", "/connectors/api", status=204)
    call("get", "/connectors/api/why?destination=orders", status=404)


def test_who_sees_some_destinations_is_told_of_no_sums_and_no_names_of_others(console, other, admin, client):
    uri = f"tcp://127.0.0.1:{other.port}"
    lists = {"excluded": "queue://secret.>\nqueue://mine.x", "dynamically_included": "queue://secret.a"}
    admin.post(reverse("new-connector"), {"name": "scoped", "uri": uri, **lists})
    wait_until(
        lambda: any(node.network.get("connectors") for node in mirror().current().nodes), "the connector in the picture"
    )
    client.force_login(make_user("operator", "mine.>", name="scoped"))
    for page in (reverse("topology"), reverse("connector", args=["scoped"]), "/api/v1/networks"):
        assert "secret" not in text(client.get(page)), page
    assert "1 more hidden (no permission)" in re.sub(
        r"\s+", " ", text(client.get(reverse("connector", args=["scoped"])))
    )
    assert client.get(reverse("connector", args=["scoped"]) + "?destination=secret.a").status_code == 403
    admin.post(reverse("remove-connector", args=["scoped"]), {"typed": "scoped"})


# -- links that are down, on the overview


def overview_with(
    state: BridgeConnectionState, *, running: bool = True, attempts: int = 19
) -> tuple[BrokerSnapshot, dict]:
    way = BridgeConnectionStats(["tcp://b:61613"], state, last_error="Connection refused", attempts=attempts)
    network = NetworkStats([ConnectorStats("to_b", "static:(tcp://b:61613)", running, ways=[way])])
    node = NodeStatus("n", "sluice", 0, 0, network=network.to_json())
    picture = apply_tick(initial_snapshot(100, 1, [], BrokerSnapshot()), 101, [node])
    return picture, overview_cells(picture, LiveChannel("overview"))


@pytest.mark.parametrize(
    "state", [BridgeConnectionState.WAITING, BridgeConnectionState.GAVE_UP, BridgeConnectionState.CONNECTING]
)
def test_a_link_that_is_down_is_on_the_overview_and_leads_to_its_connector(state):
    picture, cells = overview_with(state)
    said = "The bridge of connector to_b to tcp://b:61613 is down: Connection refused (19 attempts)."
    assert (cells["state"], cells["sentence"]) == ("look", said) == ("look", health.summarize(picture, []).sentence)
    assert f'href="{reverse("connector", args=["to_b"])}"' in cells["attention_html"]
    assert "No issues" not in cells["attention_html"]


@pytest.mark.parametrize(
    ("state", "running", "attempts"),
    [
        (BridgeConnectionState.STOPPED, False, 19),
        (BridgeConnectionState.WAITING, False, 19),
        (BridgeConnectionState.CONNECTED, True, 0),
        (BridgeConnectionState.CONNECTING, True, 0),
    ],
)
def test_a_link_that_is_up_not_yet_tried_or_of_a_stopped_connector_is_none_that_is_down(state, running, attempts):
    _, cells = overview_with(state, running=running, attempts=attempts)
    assert cells["state"] == "good"
    assert "No issues" in cells["attention_html"]
