"""Test that the same traffic and requests as recorded of ActiveMQ 5.17.2 give responses of the same shape."""

import json

import pytest

from console.exporters.jolokia.attributes import KINDS
from tests.monitoring.golden.record import RECORDED, document, make_traffic
from tests.monitoring.shapes import lacks
from tests.monitoring.test_monitor_endpoints import JOLOKIA, post
from tests.waiting import wait_until

GOLDEN = json.loads(RECORDED.read_text())
#: Jolokia's own version is a later one here, which tells other settings.
OTHERWISE = {"/value/config", "/value/info"}


@pytest.fixture
def asked(console, client_of):
    """A function from a recorded request to its answer here."""
    broker, operator = console.node.broker, client_of("operator")

    def settled() -> None:
        wait_until(lambda: len(broker.clients) >= 4, "the clients")

    clients = make_traffic(console.port, "ada", "lovelace", settled)
    console.clients += clients

    def ask(request):
        return (operator.get(JOLOKIA + request) if isinstance(request, str) else post(operator, request)).json()

    def is_there() -> bool:
        whole = ask({"type": "read", "mbean": "org.apache.activemq:type=Broker,brokerName=localhost"})["value"]
        names = ("QueueSubscribers", "TopicSubscribers", "DurableTopicSubscribers", "InactiveDurableTopicSubscribers")
        return all(whole[name] for name in names) and whole["TotalMessageCount"] >= 2

    wait_until(is_there, "all of the traffic in the numbers")
    return ask


def test_monitors_get_answers_of_the_shape_they_got_from_activemq(asked):
    wrong = []
    for each in GOLDEN["answers"]:
        recorded, ours = each["answer"], document(asked(each["request"]))
        if isinstance(recorded, dict) and "found" in recorded:
            assert set(ours["found"]) >= set(recorded["found"]), each["request"]
        for one, mine in zip(*([it] if isinstance(it, dict) else it for it in (recorded, ours)), strict=True):
            if (one["status"], one.get("error_type")) != (mine["status"], mine.get("error_type")):
                wrong.append(f"{each['request']}: {mine['status']} {mine.get('error_type')}")
            found = lacks(one["shape"], mine["shape"])
            wrong += [f"{each['request']}: {it}" for it in found if not any(it.startswith(no) for no in OTHERWISE)]
    assert wrong == []


@pytest.mark.parametrize("kind", sorted(GOLDEN["types"]))
def test_every_attribute_of_activemq_is_there_with_its_type(kind):
    ours = {name: each.type for name, each in KINDS[kind].attributes.items()}
    assert {name: ours.get(name) for name in GOLDEN["types"][kind]} == GOLDEN["types"][kind]
