"""Make the fixture of this version: `python -m tests.upgrade.make_fixture`, a step of each release (CONTRIBUTING.md).

Runs a whole installation, fills it through STOMP, OpenWire and the REST API, and notes what each client sent and each
request created in a ledger. What is packed was opened once from the packed file and compared with the ledger.

    tests/upgrade/fixtures/VERSION/installation.tar.xz    the data folder after a clean stop
    tests/upgrade/fixtures/VERSION/ledger.json            what must be found in it
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

from brokerapp.engine.scheduling.delivery_schedule import DELAY
from brokerapp.model.message import Message
from brokerapp.store.client.keys import trace_key
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DEAD_LETTER, FORWARD
from brokerapp.version import VERSION
from tests.e2e.installation import Installation
from tests.protocol.openwire_client import queue
from tests.upgrade.installed import (
    ARCHIVE,
    BROKER,
    FIXTURES,
    LEDGER,
    Api,
    OpenInstallation,
    archived,
    opened,
    prepare,
    read_all,
    tabulated,
    token_for,
    transact,
    unpack,
    xid,
)
from tests.waiting import wait_until

HOUR_US = 3_600_000_000
#: Milliseconds: no test of this fixture will ever see these messages delivered.
TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000
#: Messages of the recorded hour, and the id of one of them.
RECORDED, JOURNEY = 240, "ID:shop-1:7"
#: What the data folder has that the next start makes anew.
LEFT_OUT = (
    "log", "spark", "up.txt", "web.log", "store/valkey.log", "outbox", "*.lock", "store/*.lock", "tables/*.lock",
)  # fmt: skip


def main() -> int:
    """Make the fixture of this version."""
    target = FIXTURES / VERSION
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        ledger = _fill(data)
        _shrink(data)
        ledger |= {"archive": archived(data), "tables": tabulated(data)}
        target.mkdir(parents=True, exist_ok=True)
        _pack(data, target / ARCHIVE)
        (target / LEDGER).write_text(json.dumps(ledger, indent=1, sort_keys=True) + "\n")
        again = Path(folder) / "again"
        again.mkdir()
        unpack(VERSION, again)
        with opened(again) as here:
            assert json.loads(json.dumps(read_all(here, ledger))) == json.loads(json.dumps(ledger))
    sys.stdout.write(f"{target / ARCHIVE}: {(target / ARCHIVE).stat().st_size:,} bytes\n")
    return 0


def _fill(data: Path) -> dict[str, Any]:
    """Run an installation and fill it; return the ledger, without what is counted when it has stopped."""
    installation = Installation(data)
    installation.environment |= {"SLUICE_BROKER": BROKER, "SLUICE_HOURLY_TABLE_DAYS": "0"}
    with installation:
        url = (data / "store" / "store.url").read_text()
        token = token_for(installation.environment | {"DJANGO_SETTINGS_MODULE": "console.settings"}, data)
        api = Api(f"http://127.0.0.1:{installation.console}", token)
        here = OpenInstallation(data, api, installation.stomp, installation.openwire)
        ledger: dict[str, Any] = {"version": VERSION}
        _record_hour(url)
        ledger["definitions"] = _define(here)
        ledger["console"] = _create(here)
        ledger |= _send(here)
        _wait_until_archived(data)
        installation.run("brokerctl", "rebuild-tables", "--since", "12h", "--wait")
        ledger["results"] = [_analyse(here)]
        ledger["journey"] = {
            "id": JOURNEY,
            "steps": here.api(f"/messages/{JOURNEY.replace(':', '%3A')}/journey")["steps"],
        }
        ledger["journey"]["steps"] = [[each["kind"], each["place"]] for each in ledger["journey"]["steps"]]
        ledger["results"] = {id: here.api(f"/analyses/runs/{id}/result")["sentence"] for id in ledger["results"]}
    return ledger


def _record_hour(url: str) -> None:
    """Record the traffic of an hour that is over, as a node records it: tables are made of complete hours."""
    recorder, start = TraceRecorder(BROKER), time.time_ns() // 1000 // HOUR_US * HOUR_US - 3 * HOUR_US
    source, copy = "topic://VirtualTopic.Shop", "queue://Consumer.Store.VirtualTopic.Shop"
    DepthRecorder(recorder).record(start, {copy: 0})
    with redis.Redis.from_url(url) as store:
        for number in range(RECORDED):
            now = start + (number + 1) * HOUR_US // (RECORDED + 2)
            head = f"message-id:ID\\cshop-1\\c{number}\norder:{number}\n".encode()
            sent = Message(f"ID:shop-1:{number}", head, b"x" * (50 + number), True, born_us=now)
            recorder.record_enqueue(now, [sent], source)
            recorder.record(FORWARD, now + 100, [sent], [copy], source)
            if number % 40:
                recorder.record_one(ACK, now + 90_000 + 1000 * number, sent, copy, copy, "store-1", None)
            else:
                recorder.record_one(DEAD_LETTER, now + 90_000, sent, copy, copy, "store-1", "expired in transit")
            while batch := recorder.take_encoded():
                store.xadd(trace_key(BROKER), {"b": batch[0], "n": batch[1]})


def _define(here: OpenInstallation) -> dict[str, Any]:
    """Add a composite queue to the definitions, and return them as the ledger has them."""
    before = here.api("/routing")
    wanted = before["definitions"]
    wanted["virtualDestinations"] = [
        *wanted["virtualDestinations"],
        {
            "kind": "compositeQueue",
            "destination": "queue://all.orders",
            "legs": [{"destination": "queue://orders.copy"}],
        },
    ]
    body = {"definitions": wanted, "version": before["version"], "comment": "copies of orders"}
    after = here.api("/routing", body, "PUT")
    return {
        "version": before["version"] + 1,
        "virtual": sorted(json.dumps(each, sort_keys=True) for each in after["definitions"]["virtualDestinations"]),
    }


def _create(here: OpenInstallation) -> dict[str, Any]:
    """Create users, rules, reports and the like; return them as the ledger has them."""
    api = here.api
    ada = api("/users", {"name": "ada", "email": "ada@example.com"})
    api(f"/users/{ada['id']}/assignments", {"role": "support", "scopes": ["orders.>"]})
    api("/users", {"name": "eve"})
    groups = api("/groups")
    api("/groups", {"name": "night shift"})
    statement = "SELECT destination, count(*) AS messages FROM messages GROUP BY destination"
    api("/sql/queries", {"name": "Messages by destination", "statement": statement, "everyone": True})
    api("/alerts/rules", {"name": "Many orders", "metric": "depth", "pattern": "orders", "threshold": 1000})
    api(
        "/reports",
        {
            "name": "Traffic of the day", "questions": [{"kind": "traffic"}], "cron": "0 6 * * *",
            "addresses": ["a@example.com"],
        },
    )  # fmt: skip
    api("/masking", {"place": "json", "pattern": "$.card", "action": "last4"})
    api("/objectives", {"name": "Orders in time", "pattern": "orders.>"})
    found = api("/routing")
    without = found["definitions"] | {"virtualDestinations": found["definitions"]["virtualDestinations"][:1]}
    api("/routing/drafts", {"name": "No copies", "definitions": without, "version": found["version"]})
    return {
        "users": {"admin": [], "ada": ["support"], "eve": []},
        "groups": sorted(["night shift", *(each["name"] for each in groups)]),
        "rules": {"Many orders": 1000},
        "reports": {"Traffic of the day": "0 6 * * *", "Traffic of the hour": "5 * * * *"},
        "queries": {"Messages by destination": statement},
        "drafts": ["No copies"],
        "masking": ["$.card"],
        "objectives": {"Orders in time": "orders.>"},
    }


def _send(here: OpenInstallation) -> dict[str, Any]:
    """Send messages of all kinds that wait; return what each destination must hold, as its clients know."""
    orders = [_sent(json.dumps({"order": number}), region="eu" if number % 3 else "us") for number in range(20)]
    subscriber = here.client(**{"client-id": "desk"})
    subscriber.subscribe("/topic/prices", **{"activemq.subscriptionName": "feed"})
    subscriber.leave()
    client = here.client()
    for each in orders:
        client.send("/queue/orders", each["body"], persistent="true", region=each["region"])
    client.send("/queue/all.orders", "copied", persistent="true")
    client.send("/queue/large", "x" * 30_000, persistent="true", correlation_id="large-1")
    for number in range(5):
        client.send("/topic/prices", f"price {number}", persistent="true")
        client.send("/queue/groups", f"part {number}", persistent="true", JMSXGroupID="g1")
    client.subscribe("/queue/Consumer.A.VirtualTopic.Sales", "a")
    client.unsubscribe("a")
    for number in range(3):
        client.send("/topic/VirtualTopic.Sales", f"sale {number}", persistent="true")
    client.send("/queue/urgent", "at once", persistent="true", priority="9")
    client.send("/queue/later", "in ten years", persistent="true", **{DELAY: str(TEN_YEARS_MS)})
    client.send("/queue/broken", "nobody can read this", persistent="true")
    client.subscribe("/queue/broken", "broken", "client-individual")
    client.nack(client.take()[0])
    client.leave()
    with here.jms_client() as jms:
        id = xid("order-4711")
        transact(jms, "BEGIN", id)
        jms.producer()
        for text in ("first", "second"):
            jms.ask(jms.message(queue("prepared"), text, transaction_id=id))
        prepare(jms, id)
    return {
        "scheduled": [[each["to"], each["size"]] for each in here.api("/scheduled")["items"]],
        "prepared": ["order-4711"],
        "subscriptions": {"desk feed prices": [_sent(f"price {number}") for number in range(5)]},
        "queues": {
            "orders": orders,
            "urgent": [_sent("at once", priority="9")],
            "orders.copy": [_sent("copied", **{"original-destination": "/queue/all.orders"})],
            "large": [_sent("x" * 30_000, **{"correlation-id": "large-1"})],
            "groups": [_sent(f"part {number}", JMSXGroupID="g1") for number in range(5)],
            "Consumer.A.VirtualTopic.Sales": [
                _sent(f"sale {number}", **{"original-destination": "/topic/VirtualTopic.Sales"}) for number in range(3)
            ],
            "ActiveMQ.DLQ": [_sent("nobody can read this", **{"original-destination": "/queue/broken"})],
            "prepared": [_sent("first"), _sent("second")],
        },
    }


def _sent(body: str, **headers: str) -> dict[str, Any]:
    """Return a message as the ledger has it."""
    return {"body": body, "priority": "4", **headers}


def _analyse(here: OpenInstallation) -> str:
    """Run an analysis of the recorded hour, and return the id of the run."""
    run = here.api("/analyses/runs", {"kind": "traffic", "since": "6h"})
    wait_until(lambda: here.api(f"/analyses/runs/{run['id']}")["state"] == "done", "the analysis", 180)
    return str(run["id"])


def _wait_until_archived(data: Path) -> None:
    """Wait until the archiver has the recorded hour."""

    def has_it() -> bool:
        return any((data / "archive").glob("broker=*/day=*/hour=*/part-*")) and "dead_letter" in archived(data)["kinds"]

    wait_until(has_it, "the archive", 60)


def _shrink(data: Path) -> None:
    """Have the store write one snapshot instead of all that happened, and remove what the next start makes anew."""
    with EmbeddedStore(data / "store") as store, redis.Redis.from_url(store.url) as client:
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the snapshot")
    for pattern in LEFT_OUT:
        for each in data.glob(pattern):
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def _pack(data: Path, file: Path) -> None:
    with tarfile.open(file, "w:xz", preset=9) as packed:
        for each in sorted(data.iterdir()):
            packed.add(each, each.name)


if __name__ == "__main__":
    sys.exit(main())
