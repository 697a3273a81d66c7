"""Test the page of effective permissions, and impersonation by an admin, which is read-only."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from console.access.models import Assignment
from console.access.roles import Permission
from console.accounts import effective_rights, impersonation
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.ui.preferences.models import Star
from tests.console.conftest import make_user


def places_of(holder: effective_rights.PermissionHolder) -> dict[Permission, list]:
    return dict(effective_rights.scopes_by_permission(holder))


def test_what_adds_up_is_told_with_what_gives_it(db):
    sam = make_user("support", "orders.>", name="sam")
    team = Group.objects.create(name="night")
    Assignment.objects.create(group=team, role="operator", scopes=["bills.>"])
    sam.groups.add(team)
    told = places_of(effective_rights.find("user", "sam"))
    assert told[Permission.BROWSE] == [("orders.>", "role support"), ("bills.>", "operator by group night")]
    assert told[Permission.READ] == [("orders.>", "role support (masked)"), ("bills.>", "operator by group night")]
    assert told[Permission.REMOVE] == [("bills.>", "operator by group night")]
    assert told[Permission.USERS] == []
    assert places_of(effective_rights.find("group", "night"))[Permission.PAUSE] == [("bills.>", "role operator")]


def test_a_role_is_looked_at_before_anybody_has_it(db):
    holder = effective_rights.find("role", "support", ["orders.>"])
    assert holder.description == "role support for orders.>"
    here, elsewhere = (
        dict(effective_rights.destination_permissions(holder, Destination.queue(name)))
        for name in ("orders.eu", "bills")
    )
    assert (here[Permission.READ], here[Permission.RESUBMIT], here[Permission.REMOVE]) == ("masked", "yes", "no")
    assert set(elsewhere.values()) == {"no"}
    assert {command.page for command, may in effective_rights.page_permissions(holder) if may} >= {
        "overview",
        "dead-letters",
        "jobs",
    }
    assert {command.page for command, may in effective_rights.page_permissions(holder) if not may} >= {
        "users",
        "audit",
        "send",
    }


def test_who_is_closed_may_nothing(db):
    User.objects.filter(pk=make_user("operator", name="bob").pk).update(is_active=False)
    assert effective_rights.find("user", "bob").grants == ()


@pytest.mark.parametrize(("kind", "name", "scopes", "reason"), [
    ("user", "nobody", [], "User 'nobody' not found"),
    ("group", "none", [], "Group 'none' not found"),
    ("role", "king", [], "not one of the roles"),
    ("role", "admin", ["a.>"], "cannot be limited to a scope"),
    ("robot", "r2", [], "Use one of user, group, role"),
])  # fmt: skip
def test_whose_rights_there_are_none_of_is_named(kind, name, scopes, reason, db):
    with pytest.raises(BrokerError, match=reason):
        effective_rights.find(kind, name, scopes)


@pytest.fixture
def two_queues(console, wait_for_mirror):
    for name in ("orders.eu", "bills"):
        gateway().create(Destination.queue(name))
        wait_for_mirror(f"queue://{name}", 0)


def look(admin: Client, kind: str, name: str, scopes: str = ""):
    return admin.post(reverse("impersonate"), {"kind": kind, "name": name, "scopes": scopes}, follow=True)


def test_the_page_tells_verbs_pages_and_destinations(admin, two_queues):
    make_user("support", "orders.>", name="sam")
    response = admin.get(reverse("effective"), {"kind": "user", "name": "sam"})
    rows = {str(destination): dict(cells) for destination, cells in response.context["rows"]}
    assert rows["queue://orders.eu"]["Browse"] == "yes"
    assert rows["queue://bills"]["See"] == "no"
    assert "View console as sam" in response.content.decode()
    only = admin.get(reverse("effective"), {"kind": "user", "name": "sam", "show": "seen", "sort": "-browse"})
    assert [each.name for each in only.context["page"].rows] == ["orders.eu"]
    assert "kind=user&amp;name=sam" in only.content.decode()  # links stay with sam


def test_all_rights_are_worked_out_of_the_destinations_shown_alone_whatever_they_are_sorted_by(
    admin, two_queues, monkeypatch
):
    asked, cells = [], effective_rights.destination_permissions
    monkeypatch.setattr(
        effective_rights, "destination_permissions", lambda holder, each: asked.append(each.name) or cells(holder, each)
    )
    page = admin.get(reverse("effective"), {"kind": "role", "name": "support", "scopes": "orders.>", "sort": "browse"})
    assert asked == [each.name for each in page.context["page"].rows] == ["orders.eu", "bills"]


def test_the_console_is_seen_as_its_user_sees_it_marked_on_every_page(admin, two_queues):
    editor = admin.get(reverse("new-definition", kwargs={"kind": "virtualTopic"})).content.decode()
    assert "Viewing as" not in editor
    sam = make_user("support", "orders.>", name="sam")
    Star.objects.create(user=sam, subject="queue://orders.eu")
    page = look(admin, "user", "sam").content.decode()
    assert "Viewing as <strong>user sam</strong>" in page
    listed = admin.get(reverse("queues")).content.decode()
    assert "orders.eu" in listed
    assert "bills" not in listed
    assert admin.get(reverse("queues"), {"show": "starred"}).context["page"].total == 1
    shut = admin.get(reverse("users"))
    assert (shut.status_code, reverse("impersonate-end") in shut.content.decode()) == (403, True)  # there is a way out
    assert reverse("users") not in admin.get(reverse("palette"), {"q": "users"}).content.decode()


def test_nothing_is_changed_meanwhile_and_the_attempt_is_the_admins(admin, console_without_store):
    make_user("operator", name="olga")
    look(admin, "user", "olga")
    response = admin.post(reverse("purge", kwargs={"name": "q"}), {"name": "q"})
    assert (response.status_code, "is read-only" in response.content.decode()) == (403, True)
    refused = admin.post("/api/v1/messages", {"destination": "/queue/q"}, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert [
        (each.who, each.outcome, "viewing as the user olga" in each.detail) for each in AuditEntry.objects.all()[:2]
    ] == [("admin", "denied", True)] * 2


@pytest.mark.parametrize("page", ["account", "tokens", "mfa_view_recovery_codes", "change-password"])
def test_what_is_somebodys_own_is_not_shown(page, admin, console_without_store):
    make_user("viewer", name="vera")
    look(admin, "user", "vera")
    response = admin.get(reverse(page))
    assert (response.status_code, "Personal pages are not available" in response.content.decode()) == (403, True)


def test_it_ends_when_one_stops_and_both_are_in_the_trail(admin, console_without_store):
    look(admin, "role", "viewer", "orders.>")
    assert admin.get(reverse("audit")).status_code == 403
    admin.post(reverse("impersonate-end"))
    assert admin.get(reverse("audit")).status_code == 200
    changes = [(each.who, each.action, each.object) for each in AuditEntry.objects.filter(outcome="done")]
    assert changes == [("admin", "stop seeing console as", "role viewer"), ("admin", "see console as", "role viewer")]


def test_it_ends_by_itself_and_with_the_right(admin, console_without_store, monkeypatch):
    look(admin, "role", "viewer")
    with monkeypatch.context() as later:
        now = time.time() + impersonation.MINUTES * 60 + 1
        later.setattr("console.accounts.impersonation.time.time", lambda: now)
        assert admin.get(reverse("audit")).status_code == 200
    look(admin, "role", "viewer")
    assert admin.get(reverse("audit")).status_code == 403
    make_user("admin", name="other")
    Assignment.objects.filter(user__username="admin").update(role="operator")
    assert admin.get(reverse("send")).status_code != 403  # an operator again, and no more than that
    assert admin.get(reverse("audit")).status_code == 403


@pytest.fixture
def a_look_that_ended(admin, console_without_store, monkeypatch):
    look(admin, "role", "viewer")
    now = time.time() + impersonation.MINUTES * 60 + 1
    monkeypatch.setattr("console.accounts.impersonation.time.time", lambda: now)


@pytest.mark.parametrize("path", ["/queues/q/purge", "/api/v1/messages", "/theme"])
def test_a_change_that_is_the_first_request_after_an_impersonation_expired_is_refused(path, admin, a_look_that_ended):
    refused = admin.post(path, {"theme": "dark"})
    assert refused.status_code == 403
    assert "Impersonation of the role viewer ended" in refused.content.decode()
    assert (AuditEntry.objects.first().who, AuditEntry.objects.first().outcome) == ("admin", "denied")
    assert admin.post(reverse("theme"), {"theme": "dark"}).status_code == 302  # the refusal said who changes things now


def test_an_expired_impersonation_is_announced_on_one_page_and_then_over(admin, a_look_that_ended):
    notice = "Impersonation of the <strong>role viewer</strong> ended"
    part = admin.get(reverse("queues"), headers={"HX-Request": "true"})
    script = admin.get(reverse("overview"), headers={"Sec-Fetch-Dest": "empty"})
    assert notice not in part.content.decode() + script.content.decode(), "no user reads these as a page"
    assert notice in admin.get(reverse("audit")).content.decode()
    assert notice not in admin.get(reverse("overview")).content.decode()
    assert impersonation.KEY not in admin.session


def test_a_form_rendered_while_impersonating_cannot_be_sent_after_its_end_was_announced(
    admin, console_without_store, monkeypatch
):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    look(admin, "role", "viewer")
    shown = csrf_token(strict.get(reverse("overview")))
    now = time.time() + impersonation.MINUTES * 60 + 1
    monkeypatch.setattr("console.accounts.impersonation.time.time", lambda: now)
    assert "Impersonation of the" in strict.get(reverse("overview")).content.decode()
    stale = strict.post(reverse("theme"), {"theme": "dark", "csrfmiddlewaretoken": shown})
    assert (stale.status_code, "Page expired" in stale.content.decode()) == (403, True)


def csrf_token(page) -> str:
    return page.content.decode().partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]


def test_a_form_that_was_shown_to_other_eyes_cannot_be_sent_after_them(admin, console_without_store):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies

    of_admin = csrf_token(strict.get(reverse("overview")))
    look_at = {"kind": "role", "name": "viewer", "csrfmiddlewaretoken": of_admin}
    assert strict.post(reverse("impersonate"), look_at).status_code == 302
    shown = csrf_token(strict.get(reverse("overview")))
    assert strict.post(reverse("impersonate-end"), {"csrfmiddlewaretoken": shown}).status_code == 302
    stale = strict.post(reverse("theme"), {"theme": "dark", "csrfmiddlewaretoken": shown})
    assert (stale.status_code, "Page expired" in stale.content.decode()) == (403, True)


def test_an_address_that_leads_nowhere_leads_whoever_looks_to_no_page_of_the_admins(admin, console_without_store):
    look(admin, "role", "viewer")
    missing = admin.get("/admin/nothing/at/all")
    said = missing.content.decode()
    assert (missing.status_code, f'href="{reverse("users")}"' in said, "role viewer" in said) == (404, False, True)


def test_who_looks_asks_programs_questions_on_their_own_account(admin, console_without_store, monkeypatch):
    asked, me = [], User.objects.get(username="admin")
    monkeypatch.setattr(
        "console.api.common.auth.LIMIT", SimpleNamespace(acquire=lambda asker: asked.append(asker) or 0)
    )
    make_user("viewer", name="vera")
    look(admin, "user", "vera")
    assert admin.get("/api/v1/me").json()["name"] == "vera"
    assert asked == [f"user {me.pk}"]


def test_what_is_the_admins_own_is_offered_and_shown_to_no_other_eyes(admin, console_without_store):
    me = User.objects.get(username="admin")
    Star.objects.create(user=me, subject="queue://mine")
    new = admin.post(reverse("new-user"), {"username": "newcomer", "way": "link"})
    assert look(admin, "role", "admin").status_code == 200
    page = admin.get(reverse("queues"))
    assert page.context["user"].get_username() == "role admin"
    assert not any(
        f'"{reverse(each)}"' in page.content.decode() for each in ("theme", "zone", "keys", "account", "tokens")
    )
    assert "data-seen=" not in page.content.decode()
    seen = admin.get(new["Location"])
    admin.post(reverse("impersonate-end"))
    assert (seen.context["secret"], admin.get(new["Location"]).context["secret"] is None) == (None, False)


def test_the_second_factor_of_who_looks_counts_and_not_that_of_whom_they_see(admin, console_without_store, settings):
    make_user("support", name="sam")
    look(admin, "user", "sam")
    settings.IDENTITY = replace(settings.IDENTITY, second_factor=frozenset({"support"}))
    assert admin.get(reverse("queues")).status_code == 200
    settings.IDENTITY = replace(settings.IDENTITY, second_factor=frozenset({"admin"}))
    assert admin.get(reverse("queues"))["Location"] == reverse("mfa_activate_totp")


def test_who_looks_logs_out_as_themselves(admin, console_without_store):
    look(admin, "role", "viewer")
    admin.post(reverse("logout"))
    entry = AuditEntry.objects.first()
    assert (entry.who, entry.action) == ("admin", "log out")


def test_whoever_sees_nothing_cannot_be_looked_through(admin, console_without_store):
    make_user("", name="nil")
    assert "has no permission to view the console." in look(admin, "user", "nil").content.decode()
    assert AuditEntry.objects.first().outcome == "refused"


def test_a_program_is_told_the_same(admin):
    make_user("support", "orders.>", name="sam")
    told = admin.get("/api/v1/effective/user/sam", {"destination": "queue://orders.eu"}).json()
    assert told["of"] == "user sam"
    assert told["destination"]["read"] == "masked"
    assert {"verb": "browse", "places": [{"where": "orders.>", "by": "role support"}]} in told["rights"]
    assert admin.get("/api/v1/effective/user/nobody").status_code == 409
