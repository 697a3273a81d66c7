"""Who may do what: every page tried as everybody, from one table."""

import pytest
from django.test import Client
from django.urls import reverse

from console.access import ROLES_BY_VERB, Role, Verb
from console.models import AuditEntry

RUN = "11111111-1111-1111-1111-111111111111"
#: Page, arguments, method, the right it needs.
PAGES = [
    ("overview", {}, "get", Verb.SEE),
    ("demo", {}, "post", Verb.DEMO),
    ("find", {}, "get", Verb.SEE),
    ("queues", {}, "get", Verb.SEE),
    ("topics", {}, "get", Verb.SEE),
    ("queue", {"name": "q"}, "get", Verb.SEE),
    ("topic", {"name": "t"}, "get", Verb.SEE),
    ("new-queue", {}, "get", Verb.CREATE),
    ("new-topic", {}, "post", Verb.CREATE),
    ("delete-queue", {"name": "q"}, "post", Verb.CREATE),
    ("delete-topic", {"name": "t"}, "post", Verb.CREATE),
    ("pause-queue", {"name": "q"}, "post", Verb.CREATE),
    ("resume-queue", {"name": "q"}, "post", Verb.CREATE),
    ("forget-selector", {"name": "q"}, "post", Verb.CREATE),
    ("purge", {"name": "q"}, "post", Verb.PURGE),
    ("messages", {"name": "q"}, "get", Verb.BROWSE),
    ("message", {"name": "q", "seq": 1}, "get", Verb.BROWSE),
    ("routing", {}, "get", Verb.SEE),
    ("new-definition", {"kind": "compositeQueue"}, "get", Verb.ROUTE),
    ("edit-definition", {}, "post", Verb.ROUTE),
    ("check-definition", {"kind": "compositeQueue"}, "post", Verb.ROUTE),
    ("delete-definition", {}, "post", Verb.ROUTE),
    ("routing-history", {}, "get", Verb.SEE),
    ("routing-import", {}, "post", Verb.ROUTE),
    ("routing-export", {}, "get", Verb.SEE),
    ("connections", {}, "get", Verb.SEE),
    ("analyses", {}, "get", Verb.SEE),
    ("start-run", {}, "post", Verb.ANALYSE),
    ("run", {"run_id": RUN}, "get", Verb.SEE),
    ("cancel-run", {"run_id": RUN}, "post", Verb.ANALYSE),
    ("new-schedule", {}, "post", Verb.ANALYSE),
    ("change-schedule", {"schedule_id": 1, "action": "switch"}, "post", Verb.ANALYSE),
    ("audit", {}, "get", Verb.AUDIT),
]
OPEN = {"login", "logout", "healthz", "theme"}  # for everybody, or for everybody who is logged in


def test_the_table_has_every_page():
    from console.urls import urlpatterns

    assert {pattern.name for pattern in urlpatterns} == {page for page, *_ in PAGES} | OPEN


@pytest.mark.parametrize(("page", "arguments", "method", "verb"), PAGES, ids=[page for page, *_ in PAGES])
def test_anonymous_is_sent_to_the_login(page, arguments, method, verb, db):
    url = reverse(page, kwargs=arguments)
    response = getattr(Client(), method)(url)
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


DENIED = [
    (page, arguments, method, verb, role)
    for page, arguments, method, verb in PAGES
    for role in ("", *Role)
    if role not in ROLES_BY_VERB[verb]
]


@pytest.mark.parametrize(
    ("page", "arguments", "method", "verb", "role"), DENIED, ids=[f"{each[0]}-{each[4] or 'nobody'}" for each in DENIED]
)
def test_a_role_without_the_right_is_told_which_one_it_lacks(page, arguments, method, verb, role, browser_of):
    response = getattr(browser_of(role), method)(reverse(page, kwargs=arguments))
    assert response.status_code == 403
    assert str(verb) in response.content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.outcome) == (verb.name.lower(), "denied")


def test_support_looks_and_browses_and_changes_nothing():
    rights = {verb for verb, roles in ROLES_BY_VERB.items() if Role.SUPPORT in roles}
    assert rights == {Verb.SEE, Verb.BROWSE}


def test_viewer_sees_and_does_not_browse():
    assert {verb for verb, roles in ROLES_BY_VERB.items() if Role.VIEWER in roles} == {Verb.SEE}


@pytest.mark.parametrize("role", list(Role))
def test_a_page_offers_only_what_the_role_may_do(role, browser_of, console, seen):
    queue = {"name": f"offered.{role}"}
    console.send(f"/queue/offered.{role}", "x")
    seen(f"offered.{role}", 1)
    text = browser_of(role).get(reverse("queue", kwargs=queue)).content.decode()
    may_purge, may_browse = role is Role.ADMIN, role is not Role.VIEWER
    assert (reverse("purge", kwargs=queue) in text) is may_purge
    assert (reverse("messages", kwargs=queue) in text) is may_browse
