"""Test the page and the REST API of prepared transactions: who sees them, and who ends them."""

import itertools

import pytest
from django.test import Client
from django.urls import reverse

from brokerapp.admin.transactions import PreparedTransaction
from brokerapp.core.writes.client_write import BranchWrite
from brokerapp.engine.clients.prepared_branch import PreparedBranch, PreparedSends, PreparedSummary
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.store import BranchChange
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from tests.console.conftest import make_user
from tests.waiting import wait_until

numbers = itertools.count(1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def prepared(console, running_broker) -> str:
    """A prepared transaction that sends one message to the queue with its name."""
    name = f"XA:1:{next(numbers):02x}:62"
    queue = Destination.queue(name.replace(":", "."))
    message = Message("ID:a:1", b"message-id:ID\\ca\\c1\n", b"body", persistent=True, priority=4, born_us=17)
    branch = PreparedBranch([PreparedSends(queue, [RoutedCopy(queue)], [], [message], [0])])
    summary = PreparedSummary("shop", "jane", 1_700_000_000_000, 1, 0, 4)
    done = []
    write = BranchWrite(BranchChange(name, summary.encode(), branch.encode()), callback=lambda *_: done.append(True))
    running_broker.loop.call_soon_threadsafe(running_broker.node.broker.commits.submit, write)
    wait_until(lambda: done, "it is prepared")
    return name


def client_of(role: str, *scopes: str) -> Client:
    client = Client()
    client.force_login(make_user(role, *scopes))
    return client


def listed(client: Client) -> list[str]:
    return [each.id for each in client.get(reverse("transactions")).context["rows"]]


@pytest.mark.parametrize(("id", "name"), [("XA:4660:6f726465722d37:01", "order-7"), ("XA:1:01ff:62", ""), ("tx", "")])
def test_the_global_id_of_a_transaction_is_shown_as_text_where_it_is_one(id, name):
    assert PreparedTransaction(id, "shop", "jane", 0, 1, 0, 4).name == name


@pytest.mark.parametrize(("page", "count"), [("commit-transaction", 1), ("rollback-transaction", 0)])
def test_an_operator_ends_a_prepared_transaction_once_with_an_audit_entry(prepared, page, count):
    operator = client_of("operator")
    assert prepared in listed(operator)
    assert b"shop" in operator.get(reverse("transactions")).content
    operator.post(reverse(page), {"transaction": prepared})
    assert prepared not in listed(operator)
    queue = Destination.queue(prepared.replace(":", "."))
    assert len(gateway().browse(queue, 0, 10, None).messages if count else []) == count
    entry = AuditEntry.objects.get(object=prepared)
    assert (entry.action, entry.before["sends"]) == (
        "commit transaction" if count else "roll back transaction", 1,
    )  # fmt: skip
    again = operator.post(reverse(page), {"transaction": prepared}, follow=True)
    assert b"Prepared transaction not found" in again.content


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_programs_end_a_prepared_transaction(prepared, outcome):
    operator = client_of("operator")
    [found] = [each for each in operator.get("/api/v1/transactions").json() if each["id"] == prepared]
    assert (found["client_id"], found["user"], found["sends"]) == ("shop", "jane", 1)
    assert operator.post(f"/api/v1/transactions/{prepared}/{outcome}").status_code == 204
    assert operator.post(f"/api/v1/transactions/{prepared}/{outcome}").status_code == 409


def test_who_may_not_remove_messages_everywhere_ends_none(prepared):
    assert client_of("support").post(reverse("commit-transaction"), {"transaction": prepared}).status_code == 403
    scoped = client_of("operator", "mine.>")
    assert listed(scoped) == []
    assert scoped.post(reverse("commit-transaction"), {"transaction": prepared}).status_code == 403
