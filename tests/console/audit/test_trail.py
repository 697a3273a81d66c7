"""Test the audit log: entries, search and export."""

import csv
import getpass
import json
import socket
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from brokerapp.errors import DefinitionRefused, StoreUnavailable
from brokerapp.management.verbs.operations import reporting
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from console.audit import retention, trail
from console.audit.models import AuditEntry
from console.audit.search.change_descriptions import changes_of
from console.audit.search.queries import PAGE_SIZE
from console.routing.definitions.changes import definition_to_json
from console.ui.formatting.json_diff import differences
from tests.console.conftest import make_user

queue = Destination.queue


@pytest.fixture
def entries(db):
    AuditEntry.objects.create(
        who="ada", address="::1", action="purge", object="queue://orders.eu", outcome="done", before={"QueueSize": 3}
    )
    AuditEntry.objects.create(
        who="bob", address="::1", action="define", object="virtualTopic:x", outcome="refused", detail="a loop"
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["bob", "ada"]),
        ("?q=purg", ["ada"]),
        ("?who=bob", ["bob"]),
        ("?action=purge", ["ada"]),
        ("?outcome=refused", ["bob"]),
        ("?q=nothing", []),
        ("?outcome=x", []),
        ("?object=queue://orders.>", ["ada"]),
        ("?object=orders.*", ["ada"]),
        ("?object=*.eu", ["ada"]),
        ("?object=topic://>", []),
        ("?object=queue://orders.*.north", []),
        ("?object=Topic:x", ["bob"]),
        ("?since=2000-01-01&until=2999-01-01T00:00", ["bob", "ada"]),
        ("?until=2000-01-01", []),
        ("?since=tomorrow", []),
    ],
)
def test_entries_are_listed_newest_first_and_filtered(query, expected, admin, entries):
    assert [entry.who for entry, _ in admin.get(reverse("audit") + query).context["rows"]] == expected


def test_a_time_that_is_none_is_named(admin, entries):
    assert "Invalid date or time" in admin.get(reverse("audit") + "?since=tomorrow").content.decode()


def test_an_entry_shows_before_and_the_reason(admin, entries):
    text = admin.get(reverse("audit")).content.decode()
    assert "depth" in text
    assert "<del>3</del>" in text
    assert "a loop" in text


def shown(action: str, before, after, outcome: str = "done") -> list[tuple]:
    """What a page shows of an entry."""
    entry = AuditEntry(action=action, object="x", before=before, after=after, outcome=outcome)
    return [(each.name, each.before, each.after, each.kind) for each in changes_of(entry)]


def test_the_reason_of_an_operation_is_not_shown_as_removed():
    before = {"message": "ID:1", "reason": "typing error"}
    assert shown("edit", before, {"message": "ID:2", "places": ["queue://a", "queue://b"]}) == [
        ("original message", "ID:1", "ID:1", "same"),
        ("reason", "typing error", "typing error", "same"),
        ("new message", "ID:2", "ID:2", "same"),
        ("sent to", "queue://a, queue://b", "queue://a, queue://b", "same"),
    ]
    asked = {"target": "", "selector": "n > 1", "messages": []}
    assert shown("retry", asked, {"job": "j", "reason": "fixed"}) == [
        ("selector", "n > 1", "n > 1", "same"), ("job", "j", "j", "same"), ("reason", "fixed", "fixed", "same"),
    ]  # fmt: skip
    assert shown("send", {"count": 2, "properties": {"n": "5"}}, None, "refused") == [
        ("messages", "2", "2", "same"), ("properties", "n = 5", "n = 5", "same"),
    ]  # fmt: skip


def test_a_change_of_the_routing_is_shown_by_names_and_not_by_places():
    def orders(*legs: ForwardTarget) -> dict:
        return definition_to_json(CompositeDestination(queue("orders"), legs))

    eu, us = ForwardTarget(queue("orders.eu"), "region = 'eu'"), ForwardTarget(queue("orders.us"), "region = 'us'")
    changed = [
        (
            "Composite queue orders, target orders.us", "region = 'us'", "region = 'USA'", "changed",
        )
    ]  # fmt: skip
    before, after = orders(eu, us), orders(eu, replace(us, selector="region = 'USA'"))
    assert shown("apply routing", [before], [after]) == changed
    assert shown("draft", before, after) == changed
    whole = [{**each, "version": version} for version, each in enumerate((before, after), start=3)]
    assert shown("define", *whole) == changed
    assert shown("apply routing", [None], [orders(eu)])[:2] == [
        ("Composite queue orders", "created", "created", "same"),
        ("Composite queue orders, target orders.eu", None, "region = 'eu'", "added"),
    ]
    assert shown("draft", before, None)[0] == ("Composite queue orders", "deleted", "deleted", "same")
    assert shown("draft", {"virtualDestinations": [{"kind": "unknown"}]}, None) != []


def test_the_place_of_a_value_is_shown_in_words():
    before, after = {"roles": [{"scopes": ["a.>"]}]}, {"roles": [{"scopes": ["b.>"]}], "isActive": True}
    assert [each[0] for each in shown("give role", before, after)] == ["role 1, scope 1", "is active"]


def test_pages_go_by_key_to_older_entries_and_back(admin, db):
    AuditEntry.objects.bulk_create(AuditEntry(who=f"u{number}", outcome="done") for number in range(2 * PAGE_SIZE + 1))
    first = admin.get(reverse("audit")).context
    second = admin.get(reverse("audit") + first["older"]).context
    third = admin.get(reverse("audit") + second["older"]).context
    assert [len(each["rows"]) for each in (first, second, third)] == [PAGE_SIZE, PAGE_SIZE, 1]
    assert not third["older"]
    assert not first["newer"]
    back = admin.get(reverse("audit") + third["newer"]).context
    assert [entry.who for entry, _ in back["rows"]] == [entry.who for entry, _ in second["rows"]]


def text_of(response) -> str:
    return b"".join(response).decode()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_a_file_holds_what_the_query_finds_and_leaves_an_entry(admin, entries):
    response = admin.get(reverse("audit-export", kwargs={"format": "csv"}) + "?who=ada")
    (row,) = csv.DictReader(text_of(response).splitlines())
    assert (row["who"], json.loads(row["before"])) == ("ada", {"QueueSize": 3})
    entry = AuditEntry.objects.first()
    assert (entry.action, entry.after) == ("export audit", {"format": "csv", "who": "ada"})


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_a_file_of_json_lines_holds_an_entry_a_line(admin, entries):
    lines = text_of(admin.get(reverse("audit-export", kwargs={"format": "jsonl"}))).splitlines()
    assert [json.loads(line)["who"] for line in lines] == ["admin", "bob", "ada"]


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_a_value_that_begins_like_a_formula_is_text_to_spreadsheets(admin, db):
    AuditEntry.objects.create(who="=cmd()", outcome="done")
    text = text_of(admin.get(reverse("audit-export", kwargs={"format": "csv"}) + "?outcome=done"))
    assert "'=cmd()" in text


def a_request(**headers):
    request = RequestFactory().post("/", headers=headers, REMOTE_ADDR="192.0.2.7")
    request.user = make_user("operator", name="ada")
    return request


def test_an_entry_says_who_from_where_with_what(db):
    with trail.recording(a_request(user_agent="curl/8"), "purge", "queue://a", before=1) as change:
        change.after = 0
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.address, entry.agent, entry.via) == ("ada", "192.0.2.7", "curl/8", "console")
    assert (entry.before, entry.after, entry.outcome) == (1, 0, "done")


def test_an_address_that_the_browser_claims_is_not_believed(db):
    trail.record_denied(a_request(x_forwarded_for="198.51.100.1"), "purge", "queue://a", "no")
    assert AuditEntry.objects.get().address == "192.0.2.7"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(DefinitionRefused("no"), "refused"), (StoreUnavailable("gone"), "failed"), (ZeroDivisionError(), "failed")],
)
def test_what_did_not_work_is_recorded_too(error, outcome, db):
    with pytest.raises(type(error)), trail.recording(trail.AuditActor("worker"), "move", "queue://a"):
        raise error
    entry = AuditEntry.objects.get()
    assert entry.outcome == outcome
    assert entry.detail


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, []),
        (1, 2, [("", "1", "2", "changed")]),
        ({"a": 1}, {"a": 1}, [("a", "1", "1", "same")]),
        ({"a": 1}, {"b": "x"}, [("a", "1", None, "removed"), ("b", None, "x", "added")]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1]}}, [("a.b[1]", "2", None, "removed")]),
        (None, {"run": 1}, [("run", None, "1", "added")]),
    ],
)
def test_differences_are_found_place_by_place(before, after, expected):
    assert [(each.name, each.before, each.after, each.kind) for each in differences(before, after)] == expected


def test_old_entries_go_when_a_time_is_set_and_that_is_recorded(entries):
    AuditEntry.objects.filter(who="ada").update(time=timezone.now() - timedelta(days=31))
    assert retention.purge(0) == 0
    assert retention.purge(30) == 1
    assert [(entry.who, entry.action) for entry in AuditEntry.objects.all()] == [
        ("retention", "forget"),
        ("bob", "define"),
    ]


def test_what_brokerctl_changes_is_in_the_trail_and_not_on_the_terminal(db, caplog):
    caplog.set_level("INFO")
    with reporting("purge", "queue://a") as operation:
        operation.before, operation.after = {"QueueSize": 3}, {"QueueSize": 0, "purged": 3}
    entry = AuditEntry.objects.get()
    assert (entry.via, entry.action, entry.object) == ("brokerctl", "purge", "queue://a")
    assert (entry.before, entry.after) == ({"QueueSize": 3}, {"QueueSize": 0, "purged": 3})
    assert (entry.who, entry.address) == (getpass.getuser(), socket.gethostname())
    assert not caplog.records


@pytest.fixture
def brokerctl(running_broker, monkeypatch):
    """A function that runs brokerctl on the installation's broker; what it changed is read from the trail."""
    monkeypatch.setenv("REDIS_URL", running_broker.redis_url)
    monkeypatch.setenv("SLUICE_BROKER", running_broker.name)

    def run(*words: str) -> AuditEntry | None:
        call_command("brokerctl", *words, stdout=StringIO())
        return AuditEntry.objects.first()

    return run


@pytest.mark.django_db(transaction=True)
def test_brokerctl_tells_of_changes_and_of_nothing_else(brokerctl, running_broker):
    here = ("--redis", running_broker.redis_url, "--name", running_broker.name)
    brokerctl("create", "queue://told", *here)  # the same broker, said in more words
    brokerctl("destinations")
    with pytest.raises(CommandError):
        brokerctl("purge", "queue://unknown")
    with pytest.raises(CommandError):
        brokerctl("create", "queue://elsewhere", "--name", "another")
    assert [(entry.action, entry.object, entry.outcome) for entry in AuditEntry.objects.all()] == [
        ("purge", "queue://unknown", "refused"),
        ("create", "queue://told", "done"),
    ]


@pytest.mark.django_db(transaction=True)
def test_an_entry_of_brokerctl_says_how_it_was_before_and_how_it_is_after(brokerctl, broker, tmp_path):
    created = brokerctl("create", "queue://changed")
    assert (created.before, created.after["QueueSize"]) == (None, 0)
    paused = brokerctl("pause", "changed")
    assert (paused.before["Paused"], paused.after["Paused"]) == (False, True)
    broker.send("/queue/changed", *"abc", parity="odd")
    moved = brokerctl("move", "changed", "changed.to", "--selector", "parity = 'odd'", "--limit", "2")
    assert moved.before == {"QueueSize": 3, "Paused": True}
    asked = {"target": "changed.to", "selector": "parity = 'odd'", "limit": 2}
    assert moved.after == {"QueueSize": 1, "Paused": True, "moved": 2, **asked}
    purged = brokerctl("purge", "changed")
    assert (purged.before["QueueSize"], purged.after["QueueSize"], purged.after["purged"]) == (1, 0, 1)
    deleted = brokerctl("delete", "changed")
    assert (deleted.before["QueueSize"], deleted.after) == (0, {"deleted": "changed", "messages": 0})
    file = tmp_path / "activemq.xml"
    file.write_text(
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations><virtualTopic name='VT.>'/>"
        "</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
    )
    imported = brokerctl("import", str(file))
    names = [[each["name"] for each in told["virtualDestinations"]] for told in (imported.before, imported.after)]
    assert (names[1], names[0] != names[1]) == (["VT.>"], True)
    put = brokerctl("network-put", '{"name": "far", "uri": "tcp://far:1", "options": {"password": "secret"}}')
    assert (put.object, put.before, put.after["uri"]) == ("far", None, "tcp://far:1")
    removed = brokerctl("network-remove", "far")
    assert (removed.before["uri"], removed.after) == ("tcp://far:1", {"removed": "far"})
    assert "secret" not in json.dumps([[each.before, each.after] for each in AuditEntry.objects.all()])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["resubmit", "retry"])
def test_a_verb_works_by_its_former_name_and_is_recorded_under_it(brokerctl, verb):
    brokerctl("create", "renamed")
    assert brokerctl(verb, "renamed").action == "retry"


def test_a_verb_that_does_not_exist_is_answered_with_the_nearest_and_all_said_once():
    with pytest.raises(CommandError) as found:
        call_command("brokerctl", "purg")
    said = str(found.value)
    assert "unknown command 'purg': did you mean purge?" in said
    assert said.count("cancel-scheduled") == 1
