"""Test Jolokia's responses against recorded shapes, which monitoring tools parse."""

import pytest

from brokerapp.model.stats_records import ConnectionDetails
from console.destinations.clients.clients import ConnectionView
from console.exporters.jolokia.agent import JolokiaAgent, request_from_body, request_from_path
from console.exporters.jolokia.errors import DENIED, BadRequest, JolokiaError
from console.exporters.jolokia.object_names import encoded
from console.exporters.jolokia.request_path import split
from console.exporters.options import MonitorOptions
from tests.monitoring.readings import AT, AWKWARD, ORDERS, PRICES, beans, durable, node

BROKER = "org.apache.activemq:type=Broker,brokerName=localhost"
QUEUE = f"{BROKER},destinationType=Queue,destinationName=Orders.In"
QUEUES = "org.apache.activemq:type=Broker,brokerName=*,destinationType=Queue,destinationName=*"
SORTED = "org.apache.activemq:brokerName=localhost,destinationName={},destinationType={},type=Broker"
IN_PATH = f"/read/{QUEUE.replace('.', '!.')}"


def refuse(bean, operation, arguments):
    raise JolokiaError(403, DENIED, f"Operation {operation} is not allowed")


def ask(request, **more):
    """The document for a request, given as a path or as an object."""
    agent = JolokiaAgent(beans(**more), refuse)
    return agent.answer(
        request_from_path(split(request), {}) if isinstance(request, str) else request_from_body(request, {})
    )


def read(mbean, attribute=None, **more):
    asked = {"type": "read", "mbean": mbean, **more}
    return ask(asked | ({"attribute": attribute} if attribute is not None else {}))


def test_one_attribute_is_the_bare_value():
    assert ask(f"{IN_PATH}/QueueSize") == {
        "request": {"type": "read", "mbean": QUEUE, "attribute": "QueueSize"},
        "value": 42,
        "timestamp": int(AT),
        "status": 200,
    }


def test_a_list_of_attributes_is_an_object_and_echoed_as_a_list():
    document = ask(f"{IN_PATH}/QueueSize,ConsumerCount")
    assert document["request"]["attribute"] == ["QueueSize", "ConsumerCount"]
    assert document["value"] == {"QueueSize": 42, "ConsumerCount": 2}
    assert read(QUEUE, ["QueueSize"])["value"] == {"QueueSize": 42}


def test_a_whole_queue_has_every_attribute_of_the_table():
    value = read(QUEUE)["value"]
    expected = {
        "Name": "Orders.In", "QueueSize": 42, "EnqueueCount": 1000, "DequeueCount": 958, "DispatchCount": 960,
        "InFlightCount": 2, "ExpiredCount": 0, "ConsumerCount": 2, "ProducerCount": 1, "MemoryPercentUsage": 20,
        "AverageEnqueueTime": 1.5, "MinEnqueueTime": 0, "MaxEnqueueTime": 12, "AverageMessageSize": 20,
        "MinMessageSize": 10, "MaxMessageSize": 90, "Subscriptions": [], "MemoryLimit": 10_000,
        "MemoryUsageByteCount": 2_000, "Paused": False, "DLQ": False, "ProducerFlowControl": True,
        "SlowConsumerStrategy": None, "MessageGroups": {}, "StoreMessageSize": 2_000, "MemoryUsagePortion": 1.0,
        "EnqueuedMessageID": None, "CursorFull": False, "MaxBrowsePageSize": 400, "Options": "",
    }  # fmt: skip
    assert {name: value[name] for name in expected} == expected
    assert len(value) == 65


def test_a_wildcard_is_keyed_by_canonical_names_even_for_one_attribute():
    document = read(QUEUES, "QueueSize")
    assert document["request"]["mbean"] == QUEUES
    assert document["value"] == {SORTED.format("Orders.In", "Queue"): {"QueueSize": 42}}
    created = read(QUEUES, "QueueSize", config={"canonicalNaming": False})["value"]
    assert list(created) == [QUEUE]


def test_in_a_wildcard_what_a_bean_lacks_is_left_out():
    both = "org.apache.activemq:type=Broker,brokerName=*,destinationType=*,destinationName=*"
    value = read(both, ["Paused", "Nonsense"])["value"]
    assert value == {SORTED.format("Orders.In", "Queue"): {"Paused": False}}


@pytest.mark.parametrize(
    ("request_", "status", "error_type"),
    [
        ({"type": "read", "mbean": QUEUE + "X"}, 404, "javax.management.InstanceNotFoundException"),
        ({"type": "read", "mbean": "java.lang:type=Memory"}, 404, "javax.management.InstanceNotFoundException"),
        ({"type": "read", "mbean": QUEUE, "attribute": "Nonsense"}, 404, "javax.management.AttributeNotFoundException"),
        ({"type": "read", "mbean": QUEUE, "attribute": ["Nonsense", "Name"]}, 404,
         "javax.management.AttributeNotFoundException"),
        ({"type": "read", "mbean": QUEUES, "attribute": "Nonsense"}, 404,
         "javax.management.AttributeNotFoundException"),
        ({"type": "read", "mbean": "java.lang:*"}, 404, "javax.management.AttributeNotFoundException"),
        ({"type": "read", "mbean": "nonsense"}, 400, "javax.management.MalformedObjectNameException"),
        ({"type": "read", "mbean": QUEUE, "attribute": "Name", "path": "x"}, 404, "java.lang.IllegalArgumentException"),
        ({"type": "write", "mbean": QUEUE, "attribute": "Name", "value": 1}, 403, "java.lang.Exception"),
        ({"type": "exec", "mbean": QUEUE, "operation": "purge"}, 403, "java.lang.Exception"),
        ({"type": "notification"}, 403, "java.lang.Exception"),
    ],
)  # fmt: skip
def test_errors_are_documents_with_a_status_of_their_own(request_, status, error_type):
    document = ask(request_)
    assert document["request"] == request_
    assert (document["status"], document["error_type"], document[".error"]) == (status, error_type, True)
    assert document["error"].startswith(error_type)
    assert "value" not in document


def test_unknown_attributes_are_left_out_when_errors_are_ignored():
    asked = read(QUEUE, ["Nonsense", "Name"], config={"ignoreErrors": True})
    assert asked["value"] == {"Name": "Orders.In"}
    assert "config" not in asked["request"]


def test_a_path_leads_inside():
    assert ask(f"/read/{BROKER}/Queues/0/objectName")["value"] == SORTED.format("Orders.In", "Queue")
    document = read(QUEUES, ["Name"], path="*/Name")
    assert document["value"] == {SORTED.format("Orders.In", "Queue"): "Orders.In"}
    assert document["request"]["path"] == "*/Name"


def test_the_broker_lists_its_destinations_and_counts_all():
    value = read(BROKER)["value"]
    assert value["Queues"] == [{"objectName": SORTED.format("Orders.In", "Queue")}]
    expected = {
        "BrokerName": "localhost", "BrokerVersion": "5.17.2", "Uptime": "1 minute", "UptimeMillis": 100_000,
        "CurrentConnectionsCount": 3, "TotalConnectionsCount": 9, "TotalEnqueueCount": 1010, "TotalMessageCount": 42,
        "TotalConsumerCount": 3, "StorePercentUsage": 25, "StoreLimit": 10_000, "MemoryPercentUsage": 30,
        "MemoryLimit": 200,
        "TempPercentUsage": 25, "TempLimit": 400, "AverageMessageSize": 19, "MaxMessageSize": 90, "TotalQueuesCount": 1,
        "TotalTopicsCount": 2, "Slave": False, "Persistent": True, "JMSJobScheduler": None,
        "TransportConnectors": {"stomp": "stomp://127.0.0.1:61613"},
    }  # fmt: skip
    assert {name: value[name] for name in expected} == expected
    assert len(value) == 55


def test_the_broker_may_be_called_by_its_own_name_or_localhost():
    for name in ("sluice", "localhost", "here"):
        agent = JolokiaAgent(beans(options=MonitorOptions(broker="here")), refuse)
        asked = request_from_body(
            {"type": "read", "mbean": BROKER.replace("localhost", name), "attribute": "BrokerName"}, {}
        )
        assert agent.answer(asked)["value"] == "here"


def test_durable_subscriptions_are_beans_and_listed_with_their_topic():
    topic = f"{BROKER},destinationType=Topic,destinationName=Prices"
    names = [each["objectName"] for each in read(topic, "Subscriptions")["value"]]
    assert names[0] == (
        "org.apache.activemq:brokerName=localhost,clientId=c1,consumerId=Durable(c1_s1),destinationName=Prices,"
        "destinationType=Topic,endpoint=Consumer,type=Broker"
    )
    value = read(names[0])["value"]
    expected = {
        "ClientId": "c1", "SubscriptionName": "s1", "DestinationName": "Prices", "Active": True, "Durable": True,
        "PendingQueueSize": 2, "DispatchedQueueSize": 1, "DispatchedCounter": 6, "EnqueueCounter": 7,
        "DequeueCounter": 5, "Selector": "price > 1",
    }  # fmt: skip
    assert {name: value[name] for name in expected} == expected
    assert len(value) == 33
    assert read(BROKER, "InactiveDurableTopicSubscribers")["value"] == [{"objectName": names[1]}]


def test_health_is_good_or_says_what_is_not():
    health = f"{BROKER},service=Health"
    assert read(health, "CurrentStatus")["value"] == "Good"
    worried = ask({"type": "read", "mbean": health, "attribute": "CurrentStatus"}, used=(9_500, {}))["value"]
    assert worried.startswith("Getting Worried {")
    assert worried.endswith(" }")
    assert "Store" in worried
    assert "no broker node" in ask({"type": "read", "mbean": health, "attribute": "CurrentStatus"}, node=None)["value"]


def test_search_gives_names_and_nothing_is_no_error():
    assert ask({"type": "search", "mbean": QUEUES})["value"] == [SORTED.format("Orders.In", "Queue")]
    assert ask({"type": "search", "mbean": "java.lang:*"}) | {"request": 0} == {
        "request": 0, "value": [], "timestamp": int(AT), "status": 200,
    }  # fmt: skip


def test_version_says_which_protocol():
    for request in ("", "/", "/version", {"type": "version"}):
        value = ask(request)["value"]
        assert (value["agent"], value["protocol"]) == ("2.6.1", "8.2")
        assert {"details", "config", "info"} <= value.keys()


def test_list_describes_beans_down_to_a_depth():
    assert ask({"type": "list", "config": {"maxDepth": 1}})["value"] == {"org.apache.activemq": 1}
    names = ask({"type": "list", "config": {"maxDepth": 2}})["value"]["org.apache.activemq"]
    key = "brokerName=localhost,destinationName=Orders.In,destinationType=Queue,type=Broker"
    assert names[key] == 1
    described = ask(f"/list/org.apache.activemq/{key}")["value"]
    assert described["attr"]["Paused"] == {
        "type": "boolean", "desc": "Paused", "rw": False, "r": True, "w": False, "is": True,
    }  # fmt: skip
    assert [len(each["args"]) for each in described["op"]["browse"]] == [0, 1]
    assert described["op"]["purge"] == {"args": [], "ret": "void", "desc": "purge all messages"}
    assert described["class"] == "org.apache.activemq.broker.jmx.QueueView"


def test_long_numbers_may_be_texts():
    assert read(QUEUE, "QueueSize", config={"serializeLong": "string"})["value"] == "42"


def test_an_awkward_name_is_found_by_its_encoded_form_and_told_by_its_attribute():
    name = encoded(AWKWARD.destination.name)
    mbean = f"{BROKER},destinationType=Queue,destinationName={name}"
    agent = JolokiaAgent(beans(AWKWARD, ORDERS), refuse)
    from console.exporters.jolokia.request_path import join

    for request in (
        request_from_path(split(join(["read", mbean, "Name"])), {}),
        request_from_body({"type": "read", "mbean": mbean}, {}),
    ):
        value = agent.answer(request)["value"]
        assert (value if isinstance(value, str) else value["Name"]) == AWKWARD.destination.name


@pytest.mark.parametrize(
    "body", [1, "x", {}, {"type": 1}, {"type": "read", "attribute": [1]}, {"type": "read", "config": 1}]
)
def test_what_is_no_request_is_refused(body):
    with pytest.raises(BadRequest):
        request_from_body(body, {})


@pytest.mark.parametrize("path", ["/nonsense", "/read", "/search", "/exec/a:b=c"])
def test_a_path_that_says_no_request_is_refused(path):
    with pytest.raises(BadRequest, match="is not a request"):
        request_from_path(split(path), {})


def test_every_bean_can_be_read_whole():
    some = beans(AWKWARD, ORDERS, PRICES, subscriptions=[durable("c", "s", "Prices", True)], node=node())
    agent = JolokiaAgent(some, refuse)
    value = agent.answer(request_from_body({"type": "read", "mbean": "org.apache.activemq:*"}, {}))["value"]
    assert len(value) == 8
    assert all(value.values())


def test_list_describes_so_many_beans_at_once_and_one_by_its_path(monkeypatch):
    monkeypatch.setattr("console.exporters.jolokia.agent.MAX_DESCRIBED", 2)
    document = ask({"type": "list"})
    assert (document["status"], "exceed the maximum of 2" in document["error"]) == (400, True)
    assert len(ask({"type": "list", "config": {"maxDepth": 2}})["value"]["org.apache.activemq"]) > 2
    key = "brokerName=localhost,destinationName=Orders.In,destinationType=Queue,type=Broker"
    assert "purge" in ask({"type": "list", "path": f"org.apache.activemq/{key}"})["value"]["op"]


def test_who_consumes_and_who_produces_has_a_bean():
    told = ConnectionDetails(
        {"id": "7", "client_id": "shop", "remote_address": "10.0.0.9:4000", "user": "ada", "version": "1.2",
         "connected_ms": 0, "sent": 5},
        [{"connection": "7", "id": "a", "destinations": ["queue://Orders.>"], "selector": "n > 1", "prefetch": 9,
          "in_flight": 2, "delivered": 6, "acked": 4}],
        ["queue://Other"],
    )  # fmt: skip
    agent = JolokiaAgent(beans(peers=[ConnectionView.from_stats(told)]), refuse)

    def value_of(mbean, attribute=None):
        return agent.answer(request_from_body({"type": "read", "mbean": mbean, "attribute": attribute}, {}))["value"]

    [consumer] = value_of(BROKER, "QueueSubscribers")
    assert value_of(QUEUE, "Subscriptions") == [consumer], "a pattern is of what it names"
    value = value_of(consumer["objectName"])
    expected = {
        "ClientId": "shop", "DestinationName": "Orders.>", "PrefetchSize": 9, "MessageCountAwaitingAcknowledge": 2,
        "DispatchedCounter": 6, "DequeueCounter": 4, "Selector": "n > 1", "UserName": "ada", "Durable": False,
        "DestinationQueue": True, "DestinationTopic": False, "ConnectionId": "7",
    }  # fmt: skip
    assert {name: value[name] for name in expected} == expected
    [producer] = value_of(BROKER, "DynamicDestinationProducers")
    value = value_of(producer["objectName"])
    assert (value["DestinationName"], value["SentCount"], value["DestinationQueue"]) == ("Other", 5, True)
