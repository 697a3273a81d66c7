"""Test the health port of a node, by processes of `runbroker` and an independent parser of metrics."""

import http.client
import json
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from brokerapp.errors import ConfigurationRefused
from brokerapp.monitoring.health_server import REQUEST_BYTES, HealthAddress
from tests.faults.processes import CONFIG
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A node that is ready; its ports for clients and for health."""
    folder, port, health = tmp_path_factory.mktemp("health"), free_port(), free_port()
    config = folder / "activemq.xml"
    config.write_text(CONFIG.format(port=port, more="", name="watched"))
    run = Run("--config", config, "--data", folder / "data", "--health", f"127.0.0.1:{health}", log=folder / "log")
    try:
        run.ready()
        yield port, health
    finally:
        assert run.stop() == 0


def asked(port, path, method="GET", **headers):
    """The status, the headers and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_a_node_that_serves_clients_is_alive_and_ready(node):
    _, health = node
    assert asked(health, "/healthz")[::2] == (200, "ok\n")
    status, headers, body = asked(health, "/readyz?verbose")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {"ready": True, "node": "ok", "listeners": "ok", "store": "ok", "queues": "ok"}


def test_the_metrics_of_a_node_count_its_connections(node):
    port, health = node
    client = StompClient(port)
    found = {
        each.name: (each.labels, each.value)
        for family in text_string_to_metric_families(asked(health, "/metrics")[2])
        for each in family.samples
    }
    client.connection.disconnect()
    assert found["sluice_node_up"] == ({"node": "main"}, 1)
    assert found["sluice_node_connections"] == ({"node": "main"}, 1)
    assert found["sluice_node_accepted_connections_total"][1] >= 1
    assert found["sluice_store_rollbacks_total"] == ({}, 0)
    assert found["sluice_store_disk_blocked"] == ({}, 0)


def test_a_head_request_gets_the_headers_of_a_get_and_no_body(node):
    _, health = node
    status, headers, body = asked(health, "/readyz", "HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) == len(asked(health, "/readyz")[2])


@pytest.mark.parametrize(
    ("method", "path", "expected"), [("GET", "/", 404), ("POST", "/nowhere", 404), ("POST", "/readyz", 405)]
)
def test_other_paths_and_methods_are_refused(node, method, path, expected):
    status, headers, _ = asked(node[1], path, method)
    assert status == expected
    assert headers["Allow"] == ("GET, HEAD" if expected == 405 else None)


def test_a_request_that_is_too_large_or_malformed_is_refused(node):
    assert asked(node[1], "/healthz", **{"X-Large": "x" * 2 * REQUEST_BYTES})[0] == 431
    with socket.create_connection(("127.0.0.1", node[1]), timeout=10) as raw:
        raw.sendall(b"this is no HTTP\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400 ")


def test_who_sends_no_whole_request_in_time_is_let_go(node):
    with socket.create_connection(("127.0.0.1", node[1]), timeout=10) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert raw.recv(100) == b""
    assert asked(node[1], "/healthz")[0] == 200


@pytest.mark.parametrize("text", ["8162", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:8162", "[host]x:1"])
def test_an_address_that_cannot_be_is_refused_by_name(text):
    with pytest.raises(ConfigurationRefused, match="--health"):
        HealthAddress.parse(text)


@pytest.mark.parametrize(
    ("text", "host", "port"), [("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:8162", "::1", 8162), (":8162", "", 8162)]
)
def test_an_address_names_host_and_port(text, host, port):
    assert HealthAddress.parse(text) == HealthAddress(host, port)
