"""The data folder of the former version opens and keeps its messages, users, drafts and reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
import stomp

from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.environment import PROJECT
from tests.migrated import run_script
from tests.ports import free_port
from tests.served import serving
from tests.waiting import wait_until

# An upgrade of the first release is in tests/upgrade, and not long.
pytestmark = pytest.mark.long

HERE = Path(__file__).parent
#: Creates a token for the admin and writes it to the file that is named.
_TOKEN = """
from django.contrib.auth.models import User
from django.test import Client
import json, os
client = Client()
client.force_login(User.objects.get(username="admin"))
verbs = ["see", "browse", "read", "users", "schedule", "draft", "audit", "alert"]
body = json.dumps({"name": "test", "verbs": verbs, "days": 1})
host = {"HTTP_HOST": "127.0.0.1", "HTTP_ORIGIN": "http://127.0.0.1"}
answer = client.generic("POST", "/api/v1/tokens", body, content_type="application/json", **host)
with open(os.environ["TOKEN_FILE"], "w") as file:
    file.write(answer.json()["token"])
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """The former data folder, opened by this version: `ask(path)` calls its API, `stomp_port` its broker."""
    data = tmp_path_factory.mktemp("former")
    with tarfile.open(HERE / "installation.tar.xz") as kept:
        kept.extractall(data, filter="data")
    upgraded = subprocess.run(
        [sys.executable, "manage.py", "upgrade", "--yes", "--no-backup", "--verbose"], cwd=PROJECT,
        capture_output=True, text=True,
        env={**os.environ, "SLUICE_DATA": str(data), "DATABASE_URL": f"sqlite:///{data}/console.sqlite3"},
    )  # fmt: skip
    assert upgraded.returncode == 0, upgraded.stderr
    assert "Applying console.0031_table_schedule... OK" in upgraded.stdout
    with EmbeddedStore(data / "store") as store:
        variables = {
            **os.environ, "DJANGO_SETTINGS_MODULE": "console.settings", "SLUICE_DATA": str(data),
            "DATABASE_URL": f"sqlite:///{data}/console.sqlite3", "SLUICE_STOMP_PORT": str(free_port()),
            "SLUICE_OPENWIRE_PORT": "0",
            "REDIS_URL": store.url, "SLUICE_HOST_NODE": "1", "SLUICE_DEVELOP": "", "TOKEN_FILE": str(data / "token"),
        }  # fmt: skip
        run_script(_TOKEN, variables)
        token = (data / "token").read_text()
        with serving(variables, data / "web.log") as web:

            def ask(path):
                headers = {"Authorization": f"Bearer {token}"}
                with urllib.request.urlopen(
                    urllib.request.Request(f"{web.url}/api/v1{path}", headers=headers)
                ) as answer:
                    return json.load(answer)

            yield SimpleNamespace(
                ask=ask, data=data, port=int(re.search(r"listens on stomp://127\.0\.0\.1:(\d+)", web.log)[1])
            )


def names(page) -> set[str]:
    return {each["name"] for each in (page["items"] if isinstance(page, dict) else page)}


def test_users_roles_drafts_reports_and_rules_are_kept(installation):
    ask = installation.ask
    assert names(ask("/users")) >= {"admin", "ada", "eve", "sue"}
    [draft] = ask("/routing/drafts")["items"]
    assert draft["name"] == "Archive of orders"
    assert names(ask("/reports")) == {"Traffic of the hour", "Week of orders"}
    assert names(ask("/alerts/rules")) >= {"Dead letters"}
    assert [each["pattern"] for each in ask("/masking")] == ["$.card"]
    actions = {each["action"] for each in ask("/audit")["items"]}
    assert "create report" in actions


def test_definitions_and_depths_are_kept(installation):
    definitions = installation.ask("/routing")
    assert definitions["version"] == 2
    assert "compositeQueue" in {each["kind"] for each in definitions["definitions"]["virtualDestinations"]}
    expected = {"orders": 20, "Consumer.A.VirtualTopic.Sales": 3, "ActiveMQ.DLQ": 1}

    def depths() -> dict[str, int | None]:
        queues = installation.ask("/destinations?kind=queue")["items"]
        found = {each["name"]: each["QueueSize"] for each in queues}
        return {name: found.get(name) for name in expected}

    wait_until(lambda: depths() == expected, "the node reports its depths")


def test_messages_are_delivered_with_what_they_carried(installation):
    password = (installation.data / "admin-password").read_text().strip()
    got, connection = {}, stomp.Connection12([("127.0.0.1", installation.port)])

    class Listener(stomp.ConnectionListener):
        def on_message(self, frame):
            got.setdefault(frame.headers["subscription"], []).append(frame)

    connection.set_listener("test", Listener())
    connection.connect("admin", password, wait=True, headers={"client-id": "former"})
    connection.subscribe("/queue/orders", "orders")
    connection.subscribe("/topic/prices", "prices", headers={"activemq.subscriptionName": "feed"})
    connection.subscribe("/queue/ActiveMQ.DLQ", "dead")
    wait_until(
        lambda: (len(got.get("orders", ())), len(got.get("prices", ())), len(got.get("dead", ()))) == (20, 5, 1), "all"
    )
    connection.disconnect()
    assert [json.loads(each.body)["order"] for each in got["orders"]] == list(range(20))
    assert got["orders"][3].headers["region"] == "eu"
    assert [each.body for each in got["prices"]] == [f"price {number}" for number in range(5)]
    assert got["dead"][0].headers["original-destination"] == "/queue/broken"
    assert "later" in json.dumps(installation.ask("/scheduled")["items"])
