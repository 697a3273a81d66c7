"""Open an installation and read everything that its ledger lists, as clients and users read it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tarfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow.parquet as pq

from brokerapp.openwire.commands import (
    ConnectionId,
    DataArrayResponse,
    IntegerResponse,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.transactions import TransactionOperation
from brokerapp.store.server.embedded import EmbeddedStore
from tests.migrated import run_script
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.protocol.openwire_client import OpenWireClient
from tests.served import serving

FIXTURES = Path(__file__).parent / "fixtures"
BROKER = "sluice"
#: What the folder of a release holds.
ARCHIVE, LEDGER = "installation.tar.xz", "ledger.json"
#: Headers that are compared of each message.
HEADERS = (
    "region", "customer", "priority", "correlation-id", "type", "redelivered", "original-destination", "JMSXGroupID",
)  # fmt: skip
#: Permissions of the token with which the ledger is read and the fixture is made.
VERBS = (
    "see", "browse", "read", "users", "schedule", "draft", "audit", "alert", "route", "analyse", "sql", "create",
    "remove",
)  # fmt: skip
#: Creates a token for the first admin and writes it to the file that is named.
_TOKEN = f"""
from django.contrib.auth.models import User
from django.test import Client
import json, os
client = Client()
client.force_login(User.objects.get(username="admin"))
body = json.dumps({{"name": "ledger of " + os.environ["TOKEN_FILE"][-9:], "verbs": {list(VERBS)!r}, "days": 1}})
host = {{"HTTP_HOST": "127.0.0.1", "HTTP_ORIGIN": "http://127.0.0.1"}}
answer = client.generic("POST", "/api/v1/tokens", body, content_type="application/json", **host)
assert answer.status_code == 201, answer.content
with open(os.environ["TOKEN_FILE"], "w") as file:
    file.write(answer.json()["token"])
"""


@dataclass(frozen=True)
class Api:
    """The REST API of an installation, for its first admin."""

    url: str
    token: str

    def __call__(self, path: str, body: Any = None, method: str = "") -> Any:
        """Return the answer to a request; one with a body is a POST."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method or None)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()[:500]}") from error
        return json.loads(text) if text else None


def token_for(variables: Mapping[str, str], data: Path) -> str:
    """Return a token of the first admin, which the installation's own code creates."""
    file = data / "token.text"
    run_script(_TOKEN, {**variables, "TOKEN_FILE": str(file)})
    token = file.read_text()
    file.unlink()
    return token


@dataclass(frozen=True)
class OpenInstallation:
    """A running installation."""

    data: Path
    api: Api
    stomp: int
    openwire: int

    @property
    def password(self) -> str:
        """The first admin's."""
        return (self.data / "admin-password").read_text().strip()

    def client(self, **headers: str) -> StompClient:
        """Return a STOMP client of the first admin."""
        return StompClient(self.stomp, login="admin", passcode=self.password, **headers)

    def jms_client(self) -> OpenWireClient:
        """Return an OpenWire client of the first admin."""
        return OpenWireClient(self.openwire, user="admin", password=self.password)


def variables_of(data: Path, **more: str) -> dict[str, str]:
    """Return the environment of an installation in this folder."""
    return {
        **os.environ, "DJANGO_SETTINGS_MODULE": "console.settings", "SLUICE_DATA": str(data), "SLUICE_BROKER": BROKER,
        "DATABASE_URL": f"sqlite:///{data}/console.sqlite3", "SLUICE_DEVELOP": "", **more,
    }  # fmt: skip


@contextmanager
def opened(data: Path) -> Iterator[OpenInstallation]:
    """Start the store, and a web process with a node, on a data folder that is upgraded."""
    with EmbeddedStore(data / "store") as store:
        variables = variables_of(
            data, REDIS_URL=store.url, SLUICE_HOST_NODE="1", SLUICE_STOMP_PORT=str(free_port()),
            SLUICE_OPENWIRE_PORT=str(free_port()),
        )  # fmt: skip
        token = token_for(variables, data)
        with serving(variables, data / "web.log") as web:
            ports = re.search(r"listens on stomp://127\.0\.0\.1:(\d+), tcp://127\.0\.0\.1:(\d+)", web.log)
            assert ports, web.log
            yield OpenInstallation(data, Api(web.url, token), int(ports[1]), int(ports[2]))


# -- transactions


def xid(name: str) -> XATransactionId:
    """Return the id of the only branch of a transaction."""
    return XATransactionId(4711, name.encode(), b"1")


def transact(client: OpenWireClient, operation: str, id: XATransactionId | None) -> Any:
    """Return the answer to a command about a transaction."""
    info = TransactionInfo(
        connection_id=ConnectionId(client.connection_id), transaction_id=id, type=TransactionOperation[operation]
    )
    answer = client.ask(info)
    assert isinstance(answer, Response), answer
    return answer


def prepare(client: OpenWireClient, id: XATransactionId) -> None:
    """Prepare a branch."""
    answer = transact(client, "PREPARE", id)
    assert isinstance(answer, IntegerResponse), answer


# -- what the ledger lists


def read_all(here: OpenInstallation, ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the installation holds of all that a ledger lists, in the form of the ledger."""
    return {
        "version": ledger["version"],
        "definitions": _definitions(here),
        "scheduled": _scheduled(here),
        "console": _console(here),
        "archive": archived(here.data),
        "tables": tabulated(here.data),
        "journey": journey(here, ledger["journey"]["id"]),
        "results": results(here, ledger["results"]),
        # Last: this takes the messages.
        "prepared": _prepared(here),
        "subscriptions": {name: _backlog(here, name, len(each)) for name, each in ledger["subscriptions"].items()},
        "queues": {name: _messages(here, name, len(each)) for name, each in ledger["queues"].items()},
    }  # fmt: skip


def shown(frame: Any) -> dict[str, Any]:
    """Return what is compared of a message."""
    return {"body": frame.body, **{name: frame.headers[name] for name in HEADERS if name in frame.headers}}


def _messages(here: OpenInstallation, queue: str, count: int) -> list[dict[str, Any]]:
    client = here.client()
    client.subscribe(f"/queue/{queue}")
    found = [shown(each) for each in client.take(count)]
    assert client.has_no_more(), f"{queue} holds more than {count} messages"
    client.leave()
    return found


def _backlog(here: OpenInstallation, subscription: str, count: int) -> list[dict[str, Any]]:
    client_id, name, topic = subscription.split(" ")
    client = here.client(**{"client-id": client_id})
    client.subscribe(f"/topic/{topic}", **{"activemq.subscriptionName": name})
    found = [shown(each) for each in client.take(count)]
    assert client.has_no_more(), f"{subscription} holds more than {count} messages"
    client.leave()
    return found


def _prepared(here: OpenInstallation) -> list[str]:
    """Return the prepared transactions, which are committed: the queues of the ledger have what they sent."""
    with here.jms_client() as client:
        found = transact(client, "RECOVER", None)
        assert isinstance(found, DataArrayResponse)
        names = [each.global_transaction_id.decode() for each in found.data or ()]
        for name in names:
            transact(client, "COMMIT_TWO_PHASE", xid(name))
    return sorted(names)


def _definitions(here: OpenInstallation) -> dict[str, Any]:
    found = here.api("/routing")
    return {
        "version": found["version"],
        "virtual": sorted(json.dumps(each, sort_keys=True) for each in found["definitions"]["virtualDestinations"]),
    }


def _scheduled(here: OpenInstallation) -> list[list[Any]]:
    return sorted([each["to"], each["size"]] for each in here.api("/scheduled")["items"])


def _console(here: OpenInstallation) -> dict[str, Any]:
    ask = here.api
    users = {each["name"]: sorted(a["role"] for a in each["assignments"]) for each in _items(ask("/users"))}
    queries = {each["name"]: each["statement"] for each in ask("/sql/queries")}
    return {
        "users": users,
        "groups": sorted(each["name"] for each in ask("/groups")),
        "rules": {each["name"]: each["threshold"] for each in ask("/alerts/rules")},
        "reports": {each["name"]: each["cron"] for each in ask("/reports")},
        "queries": queries,
        "drafts": sorted(each["name"] for each in _items(ask("/routing/drafts"))),
        "masking": sorted(each["pattern"] for each in ask("/masking")),
        "objectives": {each["name"]: each["pattern"] for each in ask("/objectives")},
    }


def _items(page: Any) -> list[Any]:
    return page["items"] if isinstance(page, dict) else page


def archived(data: Path) -> dict[str, Any]:
    """Return the number of events by kind, and a digest of all of them, as an engine that is not ours reads them."""
    files = f"{data}/archive/broker={BROKER}/day=*/hour=*/part-*.parquet"
    rows = duckdb.sql(
        f"SELECT kind, msg_id, destination, epoch_us(ts) FROM read_parquet('{files}', union_by_name=true) ORDER BY ALL"
    ).fetchall()
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return {"kinds": dict(sorted(Counter(kind for kind, *_ in rows).items())), "digest": digest}


def tabulated(data: Path) -> dict[str, Any]:
    """Return the rows of each hourly table, and the messages of the one of traffic."""
    found: dict[str, Any] = {}
    for manifest in sorted((data / "tables" / f"broker={BROKER}").glob("day=*/manifest.json")):
        files = json.loads(manifest.read_bytes())["files"].get("hourly", {})
        for table, file in files.items():
            rows = pq.read_table(manifest.parent / file, partitioning=None)
            found[table] = found.get(table, 0) + rows.num_rows
            if table == "traffic":
                found["messages"] = found.get("messages", 0) + sum(rows["messages"].to_pylist())
    return dict(sorted(found.items()))


def results(here: OpenInstallation, runs: Iterable[str]) -> dict[str, str]:
    """Return the sentences of the results of these runs of analyses, by id."""
    return {id: here.api(f"/analyses/runs/{id}/result")["sentence"] for id in runs}


def journey(here: OpenInstallation, id: str) -> dict[str, Any]:
    """Return the steps of a message, which are in the archive."""
    found = here.api(f"/messages/{quote(id, safe='')}/journey")
    return {"id": id, "steps": [[each["kind"], each["place"]] for each in found["steps"]]}


def unpack(version: str, data: Path) -> dict[str, Any]:
    """Unpack the installation of a release into a folder, and return its ledger."""
    with tarfile.open(FIXTURES / version / ARCHIVE) as packed:
        packed.extractall(data, filter="data")
    ledger: dict[str, Any] = json.loads((FIXTURES / version / LEDGER).read_bytes())
    return ledger


def manage(*words: str) -> list[str]:
    """Return a command line of manage.py."""
    return [sys.executable, "manage.py", *words]
