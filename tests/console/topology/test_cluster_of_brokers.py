"""Test a cluster of three real brokers in the console of one: members, and what is unavailable without which."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.urls import reverse

from brokerapp.cluster.settings import ClusterMember, ClusterSettings
from brokerapp.config import default_config
from brokerapp.network.options.address import BrokerAddress
from console.broker.live.channels import LiveChannel, overview_cells, topology_cells
from console.broker.mirror import mirror
from tests.console.conftest import close_console, point_at
from tests.ports import free_port
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

WEST, NORTH, EAST = "west", "north", "east"


class Cluster:
    """Three brokers; `west` keeps the record."""

    def __init__(self, store_url: str) -> None:
        members = tuple(ClusterMember(name, BrokerAddress("127.0.0.1", free_port())) for name in (WEST, NORTH, EAST))
        terms = ClusterSettings(members, WEST, retry_ms=100)
        self._store_url = store_url
        self._configs = {
            each.name: replace(default_config(each.name, each.address.port), cluster=terms) for each in members
        }
        self.brokers: dict[str, RunningNode] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.brokers[name] = RunningNode(self._configs[name], self._store_url)

    def stop(self, name: str) -> None:
        self.brokers.pop(name).stop()


@pytest.fixture
def cluster(store_url, settings, tmp_path):
    """All are there, and the console is that of `north`."""
    running = Cluster(store_url)
    try:
        running.start(WEST, NORTH, EAST)
        point_at(settings, store_url, NORTH, tmp_path)
        yield running
    finally:
        close_console()
        for name in list(running.brokers):
            running.stop(name)


def live(name: str) -> str:
    """A cell of the picture as the socket sends it."""
    return topology_cells(mirror().current(), LiveChannel("topology")).get(name)


def overview() -> dict:
    return overview_cells(mirror().current(), LiveChannel("overview"))


def test_who_is_there_is_told_live_and_what_fails_without_the_master_in_words(cluster, admin):
    def page() -> str:
        return admin.get(reverse("topology")).content.decode()

    wait_until(lambda: live("mwest#level") == live("meast#level") == "good", "both are there")
    assert "this broker</span>" in page()
    assert "is unreachable" not in page()
    assert admin.post(reverse("new-queue"), {"name": "made"}).status_code == 302

    cluster.stop(EAST)
    wait_until(lambda: live("meast#says") == "down", "one is gone, and the picture says so")
    wait_until(lambda: overview()["sentence"] == "Cluster broker east unreachable.", "the overview says so")
    assert "stored there are unavailable until" in overview()["attention_html"]
    assert "Unavailable operations" not in page()

    cluster.stop(WEST)
    wait_until(lambda: "Unavailable operations" in page(), "the page says what fails")
    assert "Master broker west is unreachable since" in page()
    wait_until(lambda: overview()["state"] == "act", "the overview says so")
    refused = admin.post(reverse("new-queue"), {"name": "not.made"})
    assert "master west cannot be reached" in refused.content.decode()

    cluster.start(WEST)
    wait_until(lambda: live("mwest#level") == "good", "it is back")
    wait_until(lambda: "Unavailable operations" not in page(), "all can be done again")
    assert admin.post(reverse("new-queue"), {"name": "not.made"}).status_code == 302
