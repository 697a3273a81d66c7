"""Test to which addresses webhooks and network connectors may connect."""

import json
import socket
from dataclasses import replace

import pytest

from brokerapp.errors import ConfigurationRefused, RequestRefused
from brokerapp.network.options.outbound_rules import OutboundRule
from brokerapp.system.environment import Environment
from console.alerts.delivery import webhook
from console.broker.gateway import gateway

PRIVATE = ["127.0.0.1", "10.1.2.3", "192.168.0.9", "172.16.5.5", "100.64.0.1", "::1", "fd12::1", "::ffff:10.0.0.1",
           "64:ff9b::a00:1", "2002:a00:1::1"]  # fmt: skip
NEVER = ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1%eth0", "::ffff:169.254.169.254", "fd00:ec2::254", "::"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_allowed_only_where_the_administrator_says_so(address):
    with pytest.raises(RequestRefused, match="SLUICE_OUTBOUND="):
        OutboundRule.read("").check(address)
    OutboundRule.read("private").check(address)
    named = "127.0.0.0/8, 10.0.0.0/8, 192.168.0.9, 172.16.0.0/12, 100.64.0.0/10, ::1, fd12::/16"
    OutboundRule.read(named).check(address)


@pytest.mark.parametrize("address", NEVER)
def test_an_address_of_the_link_or_of_metadata_is_never_allowed(address):
    with pytest.raises(RequestRefused, match="never allowed"):
        OutboundRule.read("private, 0.0.0.0/0, ::/0").check(address)


def test_a_public_address_is_allowed():
    for address in ("93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"):
        OutboundRule.read("").check(address)


def test_an_unreadable_list_is_refused_with_the_rule():
    with pytest.raises(ConfigurationRefused, match=r"SLUICE_OUTBOUND: 'ten\.example'"):
        OutboundRule.read("ten.example")


@pytest.mark.parametrize(
    ("variables", "outbound"),
    [
        ({}, "private"),
        ({"SLUICE_BIND": "0.0.0.0"}, ""),
        ({"SLUICE_HOSTS": "broker.example.org"}, ""),
        ({"SLUICE_URL": "https://broker.example.org"}, ""),
        ({"SLUICE_BIND": "0.0.0.0", "SLUICE_OUTBOUND": "10.0.0.0/8"}, "10.0.0.0/8"),
        ({"SLUICE_OUTBOUND": ""}, ""),
    ],
)
def test_private_addresses_are_open_by_default_only_where_the_console_is_for_its_own_machine(variables, outbound):
    assert Environment.read(variables).outbound == outbound


def test_a_webhook_connects_to_the_address_that_was_checked_though_the_name_changes(settings, monkeypatch):
    settings.SLUICE = replace(settings.SLUICE, outbound="127.0.0.1/32")
    answers = iter(["127.0.0.1", "10.9.9.9", "10.9.9.9"])
    real = socket.getaddrinfo

    def rebinding(host, port, *args, **more):
        return real(next(answers) if host == "rebound.example" else host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        port = server.getsockname()[1]
        monkeypatch.setattr(webhook, "TIMEOUT", 1.0)
        with pytest.raises(RequestRefused, match="Timed out"):
            webhook.post(f"http://rebound.example:{port}/", b"{}", {})
        server.accept()[0].close()
    assert next(answers) == "10.9.9.9"  # it was resolved once


def test_a_webhook_to_a_private_address_is_refused_before_anything_connects(settings):
    settings.SLUICE = replace(settings.SLUICE, outbound="")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        with pytest.raises(RequestRefused, match=r"SLUICE_OUTBOUND=127\.0\.0\.1"):
            webhook.post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {})
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_connector_to_a_private_address_is_refused_unless_it_is_allowed(admin, console, settings):
    def create(name):
        body = json.dumps({"name": name, "uri": "static:(tcp://127.0.0.1:1)", "options": {"autoStart": "false"}})
        return admin.post("/api/v1/networks/connectors", body, content_type="application/json")

    settings.SLUICE = replace(settings.SLUICE, outbound="")
    refused = create("inward")
    assert (refused.status_code, "SLUICE_OUTBOUND=127.0.0.1" in refused.json()["detail"]) == (409, True)
    settings.SLUICE = replace(settings.SLUICE, outbound="127.0.0.1")
    assert create("inward").status_code == 201
    [kept] = [each for each in gateway().run(gateway().admin.networks.connectors()) if each.name == "inward"]
    assert kept.outbound == "127.0.0.1"  # the node checks by it whenever it connects
    admin.delete("/api/v1/networks/connectors/inward")
