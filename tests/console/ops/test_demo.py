"""Test the demo: its orders, and the whole workload on a real broker."""

import json
import random
from dataclasses import replace

import pytest

from brokerapp.config import TransportConnector, default_config
from brokerapp.model.transport_connector import KeyStore, TlsStores
from console.ops import demo
from console.ops.client_addresses import ClientAddress
from tests.certificates import Authority
from tests.protocol.running_node import RunningNode

SECONDS = 3.0


def test_business_has_waves_and_bursts():
    rates = [demo.orders_per_second(tenth / 10) for tenth in range(int(demo.DAY_SECONDS * 10))]
    assert min(rates) == pytest.approx(demo.QUIET_RATE, abs=0.1)
    assert max(rates) == demo.BURST_RATE
    assert 0 < rates.count(demo.BURST_RATE) < len(rates) / 5


def test_audit_is_slower_than_the_shop_and_the_others_are_not():
    rates = [demo.orders_per_second(tenth / 10) for tenth in range(int(demo.DAY_SECONDS * 10))]
    mean = sum(rates) / len(rates)
    able = {pool.name: pool.consumers / pool.seconds for pool in demo.POOLS}
    assert able.pop("Audit") < mean / 2
    assert min(able.values()) > demo.BURST_RATE


def test_an_order_says_the_same_in_its_headers_and_its_body():
    headers, body = demo.order(7, random.Random(1))
    content = json.loads(body)
    assert (
        float(headers["amount"])
        == content["amount"]
        == sum(line["quantity"] * line["price"] for line in content["lines"])
    )
    assert headers["correlation-id"] == "order-000007"
    assert headers["region"] in demo.REGIONS


def test_some_cards_are_expired_and_most_are_not():
    cards = [demo.order(number, random.Random(1))[0]["card"] for number in range(1, 101)]
    assert cards.count("expired") == 100 / demo.EXPIRED_CARD_EVERY


def test_an_order_that_somebody_else_sent_is_invoiced_with_what_it_has():
    assert demo.invoice_headers({"region": "eu", "destination": "/queue/x"}) == {
        "region": "eu",
        "persistent": "true",
        "type": "invoice",
    }


def test_the_business_leaves_a_backlog_and_dead_letters(console, wait_for_mirror):
    outcome = demo.run(ClientAddress("stomp", "127.0.0.1", console.port), "ada", "lovelace", SECONDS)
    assert outcome.orders > SECONDS * demo.QUIET_RATE
    assert outcome.done["Billing"] + outcome.refused == outcome.done["Shipping"] == outcome.orders
    assert outcome.refused > 0
    assert outcome.done["Audit"] < outcome.orders
    wait_for_mirror("/queue/ActiveMQ.DLQ", outcome.refused)
    wait_for_mirror("/queue/Consumer.Audit.VirtualTopic.Orders", outcome.orders - outcome.done["Audit"])


def test_a_wrong_password_is_named(broker):
    with pytest.raises(demo.DemoFailed, match=r"^the login was refused: .*password is wrong"):
        demo.run(ClientAddress("stomp", "127.0.0.1", broker.port), "ada", "byron", SECONDS)


def test_a_broker_that_is_not_there_is_named():
    with pytest.raises(demo.DemoFailed, match=r"no STOMP connection to 127\.0\.0\.1:1$"):
        demo.run(ClientAddress("stomp", "127.0.0.1", 1), "ada", "lovelace", SECONDS)


def test_it_connects_over_tls_where_no_port_without_it_is_served(tmp_path, store_url):
    connector = TransportConnector("stomp+ssl", "stomp+ssl", "127.0.0.1", 0)
    stores = TlsStores(KeyStore(str(Authority(tmp_path).issue("broker").pem)))
    node = RunningNode(replace(default_config("demo-tls"), connectors=(connector,), tls=stores), store_url)
    business = demo.DemoWorkload(ClientAddress("stomp+ssl", "127.0.0.1", node.port), "ada", "lovelace")
    try:
        assert business.open().is_connected()
    finally:
        business.close()
        node.stop()


def test_a_broker_with_websockets_alone_is_no_broker_for_it(settings, tmp_path):
    settings.SLUICE = replace(settings.SLUICE, client_ports={"ws": 1})
    with pytest.raises(demo.DemoFailed, match=r"does not speak STOMP over WebSocket: set SLUICE_STOMP_PORT or SLUICE_"):
        demo.run_here(1, passcode="secret")
