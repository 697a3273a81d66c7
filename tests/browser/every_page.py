"""List an address of every kind of page of the console, and create what these pages show."""

from __future__ import annotations

import re
from contextlib import closing

import stomp
from django.urls import reverse, reverse_lazy
from playwright.sync_api import Page

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from console.broker.gateway import Gateway
from console.ui.navigation.command_palette import COMMANDS
from console.ui.navigation.menu import NAVIGATION
from tests.served import PASSWORD
from tests.waiting import wait_until

#: Addresses that answer with a file.
FILES = {"routing-export"}
#: Pages whose addresses nobody knows before: where a link to each stands ("": on the page before), and which it is.
DEEPER = (
    (reverse_lazy("connections"), "tbody th[scope=row] a"),
    (reverse_lazy("messages", args=["axe.orders"]), "tbody th[scope=row] a"),
    ("", "#panel a:has-text('Journey')"),
    (reverse_lazy("messages", args=["ActiveMQ.DLQ"]), "tbody th[scope=row] a"),
    ("", "#panel a:has-text('Resubmit')"),
    (reverse_lazy("dead-letters"), "tbody a:has-text('View messages')"),
    (reverse_lazy("dead-letters"), "tbody a:has-text('Resubmit')"),
    (reverse_lazy("users"), "tbody th[scope=row] a"),
)
#: Where the console can be seen as somebody else does.
AS_SUPPORT = reverse_lazy("effective", query={"kind": "role", "name": "support", "scopes": "axe.>"})
#: Forms that menu and palette reach in two steps.
FORMS = (
    reverse_lazy("message-action", query={"action": "edit"}, args=["axe.orders"]),
    reverse_lazy("shards"),
    reverse_lazy("checks"),
    reverse_lazy("add-shard"),
    reverse_lazy("backup-schedule"),
    reverse_lazy("tokens"),
    reverse_lazy("new-alert"),
    reverse_lazy("new-masking-rule"),
    reverse_lazy("new-user"),
    AS_SUPPORT,
    reverse_lazy("new-definition", args=["policyEntry"]),
    reverse_lazy("new-definition", query={"form": "expert"}, args=["virtualTopic"]),
)


def pages() -> list[str]:
    """Every page that menu and palette lead to."""
    ours = [command.url for command in COMMANDS if command.page not in FILES]
    ours += [entry.url for _, entries in NAVIGATION for entry in entries]
    ours += [str(each) for each in FORMS]
    return sorted({*ours, reverse("queue", args=["axe.orders"]), reverse("messages", args=["axe.orders"])})


def prepare(site, client) -> None:
    """Leave an order in a queue, and a dead letter of another queue."""
    headers = {"persistent": "true", "region": "eu", "content-type": "application/json"}
    client.send("/queue/axe.orders", '{"number": 4711}', headers=headers)
    fail(site, "axe.failing")


class Refusing(stomp.ConnectionListener):
    """A consumer that takes nothing."""

    def __init__(self, connection: stomp.Connection12) -> None:
        self.connection = connection

    def on_message(self, frame) -> None:
        self.connection.nack(frame.headers["ack"])


def fail(site, queue: str) -> None:
    """Leave a dead letter that a consumer of this queue refused."""
    connection = stomp.Connection12([("127.0.0.1", site.stomp_port)])
    connection.set_listener("refusing", Refusing(connection))
    connection.connect("admin", PASSWORD, wait=True)
    connection.subscribe(f"/queue/{queue}", id="1", ack="client-individual")
    dead = stomp.listener.WaitingListener("sent")
    connection.set_listener("receipts", dead)
    connection.send(f"/queue/{queue}", "x", headers={"persistent": "true"}, receipt="sent")
    dead.wait_on_receipt()
    with closing(Gateway(site.environment.redis_url, site.environment.broker_name)) as door:
        wait_until(lambda: _depth(door, "ActiveMQ.DLQ"), "the dead letter")
    connection.disconnect()


def _depth(door: Gateway, queue: str) -> int:
    try:
        return door.depth(Destination.queue(queue))
    except DestinationNotFound:
        return 0


def made(page: Page, site) -> list[str]:
    """A job that waits for a worker, and a draft, with the pages on which colours mean most."""
    page.goto(site.url + reverse("message-action", args=["axe.orders"]) + "?action=copy")
    page.locator("#target").fill("axe.copies")
    page.get_by_role("button", name=re.compile("^Copy")).click()
    page.wait_for_url("**/jobs/*/")
    job = page.url.removeprefix(site.url)
    page.goto(site.url + reverse("new-definition", args=["virtualTopic"]))
    page.get_by_label("Topics", exact=True).fill("Axe.>")
    page.get_by_role("button", name="Save as draft").click()
    page.wait_for_url("**/routing/drafts/*/")
    return [job, page.url.removeprefix(site.url), reverse("overview"), reverse("queues"), reverse("routing")]
