"""Who may do what: every page, socket topic and API operation tried as every role, from one table each.

Whoever adds a url adds its row here, and nothing else: what each role may do stands in `console.rights`.
"""

import pytest
from django.test import Client
from django.urls import reverse

from console.live.topics import CELLS, RIGHTS
from console.models import AuditEntry
from console.rights import ROLES_BY_VERB, Role, Verb
from console.urls import allauth_urls
from tests.console.conftest import make_user

RUN = "11111111-1111-1111-1111-111111111111"
QUEUE, TOPIC = {"name": "q"}, {"name": "t"}

#: Page, arguments of its url, method, the right it needs.
PAGES = [
    ("overview", {}, "get", Verb.SEE),
    ("demo", {}, "post", Verb.DEMO),
    ("find", {}, "get", Verb.SEE),
    ("find-messages", {}, "get", Verb.BROWSE),
    ("palette", {}, "get", Verb.SEE),
    ("queues", {}, "get", Verb.SEE),
    ("topics", {}, "get", Verb.SEE),
    ("queue", QUEUE, "get", Verb.SEE),
    ("topic", TOPIC, "get", Verb.SEE),
    ("new-queue", {}, "get", Verb.CREATE),
    ("new-topic", {}, "post", Verb.CREATE),
    ("delete-queue", QUEUE, "post", Verb.CREATE),
    ("delete-topic", TOPIC, "post", Verb.CREATE),
    ("pause-queue", QUEUE, "post", Verb.PAUSE),
    ("resume-queue", QUEUE, "post", Verb.PAUSE),
    ("forget-selector", QUEUE, "post", Verb.CREATE),
    ("purge", QUEUE, "post", Verb.REMOVE),
    ("messages", QUEUE, "get", Verb.BROWSE),
    ("message", {**QUEUE, "seq": 1}, "get", Verb.BROWSE),
    ("message-body", {**QUEUE, "seq": 1}, "get", Verb.READ),
    ("edit-message", {**QUEUE, "seq": 1}, "post", Verb.EDIT),
    ("act", QUEUE, "get", Verb.BROWSE),
    ("save-selector", QUEUE, "post", Verb.BROWSE),
    ("forget-saved", {**QUEUE, "saved_id": 1}, "post", Verb.BROWSE),
    ("forget-groups", QUEUE, "post", Verb.PAUSE),
    ("message-page", {"id": "ID:1"}, "get", Verb.BROWSE),
    ("message-fate", {"id": "ID:1"}, "get", Verb.BROWSE),
    ("dlq", {}, "get", Verb.BROWSE),
    ("jobs", {}, "get", Verb.BROWSE),
    ("job", {"job_id": RUN}, "get", Verb.BROWSE),
    ("control-job", {"job_id": RUN, "action": "pause"}, "post", Verb.BROWSE),
    ("send", {}, "get", Verb.SEND),
    ("forget-template", {"template_id": 1}, "post", Verb.SEND),
    ("scheduled", {}, "get", Verb.BROWSE),
    ("forget-scheduled", {}, "post", Verb.REMOVE),
    ("routing", {}, "get", Verb.SEE),
    ("choose-definition", {}, "get", Verb.DRAFT),
    ("new-definition", {"kind": "compositeQueue"}, "get", Verb.DRAFT),
    ("edit-definition", {}, "post", Verb.DRAFT),
    ("check-definition", {"kind": "compositeQueue"}, "post", Verb.DRAFT),
    ("delete-definition", {}, "post", Verb.DRAFT),
    ("routing-policies", {}, "get", Verb.SEE),
    ("routing-changes", {}, "get", Verb.SEE),
    ("routing-version", {"number": 1}, "get", Verb.SEE),
    ("revert-routing", {"number": 1}, "post", Verb.ROUTE),
    ("undo-routing", {}, "post", Verb.ROUTE),
    ("draft", {"draft_id": 1}, "get", Verb.SEE),
    ("draft-step", {"draft_id": 1, "what": "remark"}, "post", Verb.DRAFT),
    ("route-preview", {}, "get", Verb.SEE),
    ("selector-tester", {}, "get", Verb.SEE),
    ("routing-findings", {}, "get", Verb.SEE),
    ("routing-import", {}, "post", Verb.DRAFT),
    ("routing-export", {}, "get", Verb.SEE),
    ("chart", {}, "get", Verb.SEE),
    ("queue-chart", QUEUE, "get", Verb.SEE),
    ("topic-chart", TOPIC, "get", Verb.SEE),
    ("star", {}, "post", Verb.SEE),
    ("save-view", {"kind": "queue"}, "post", Verb.SEE),
    ("forget-view", {"view_id": 1}, "post", Verb.SEE),
    ("queues-bulk", {}, "post", Verb.SEE),
    ("topics-bulk", {}, "post", Verb.SEE),
    ("connections", {}, "get", Verb.SEE),
    ("connection", {"connection_id": "x-1"}, "get", Verb.SEE),
    ("close-connection", {"connection_id": "x-1"}, "post", Verb.CLOSE),
    ("subscribers", {}, "get", Verb.SEE),
    ("kept", {"log": "c:sub"}, "get", Verb.BROWSE),
    ("delete-subscription", {"log": "c:sub"}, "post", Verb.CLOSE),
    ("alerts", {}, "get", Verb.SEE),
    ("new-alert", {}, "post", Verb.ALERT),
    ("edit-alert", {"rule_id": 1}, "get", Verb.ALERT),
    ("change-alert", {"rule_id": 1}, "post", Verb.ALERT),
    ("test-alert", {}, "post", Verb.ALERT),
    ("firing", {"firing_id": 1}, "get", Verb.SEE),
    ("analyses", {}, "get", Verb.SEE),
    ("start-run", {}, "post", Verb.ANALYSE),
    ("run", {"run_id": RUN}, "get", Verb.SEE),
    ("cancel-run", {"run_id": RUN}, "post", Verb.ANALYSE),
    ("new-schedule", {}, "post", Verb.SCHEDULE),
    ("change-schedule", {"schedule_id": 1, "action": "switch"}, "post", Verb.SCHEDULE),
    ("users", {}, "get", Verb.USERS),
    ("new-user", {}, "post", Verb.USERS),
    ("user", {"user_id": 1}, "get", Verb.USERS),
    ("change-user", {"user_id": 1, "action": "close"}, "post", Verb.USERS),
    ("groups", {}, "post", Verb.USERS),
    ("group", {"group_id": 999}, "get", Verb.USERS),
    ("delete-group", {"group_id": 999}, "post", Verb.USERS),
    ("roles", {}, "get", Verb.USERS),
    ("take-role", {"assignment_id": 999}, "post", Verb.USERS),
    ("give-role", {"holder_id": 999}, "post", Verb.USERS),
    ("give-group-role", {"holder_id": 999}, "post", Verb.USERS),
    ("masking", {}, "get", Verb.USERS),
    ("new-masking-rule", {}, "get", Verb.USERS),
    ("masking-rule", {"rule_id": 999}, "post", Verb.USERS),
    ("change-masking-rule", {"rule_id": 999, "action": "delete"}, "post", Verb.USERS),
    ("audit", {}, "get", Verb.AUDIT),
    ("audit-export", {"format": "csv"}, "get", Verb.AUDIT),
]
#: For everybody, or for everybody who is logged in.
OPEN = {
    "login", "logout", "invitation", "account", "change-password", "end-sessions", "healthz", "readyz", "theme", "keys",
    *(pattern.name for pattern in allauth_urls),
}  # fmt: skip

#: Topics of the live socket, and the right each needs.
TOPICS = {
    "overview": Verb.SEE,
    "list": Verb.SEE,
    "queue": Verb.SEE,
    "topic": Verb.SEE,
    "connections": Verb.SEE,
    "graph": Verb.SEE,
    "subscribers": Verb.SEE,
    "alerts": Verb.SEE,
    "run": Verb.SEE,
    "runs": Verb.SEE,
    "job": Verb.BROWSE,
    "jobs": Verb.BROWSE,
}

#: Operations of the API: method, path, the right each needs; tried below as the pages are.
OPERATIONS: list[tuple[str, str, Verb]] = []

names = pytest.mark.parametrize(("page", "arguments", "method", "verb"), PAGES, ids=[page for page, *_ in PAGES])


def ask(client: Client, page: str, arguments: dict, method: str):
    return getattr(client, method)(reverse(page, kwargs=arguments))


def test_the_table_has_every_page():
    from console.urls import urlpatterns

    assert {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")} == {page for page, *_ in PAGES} | OPEN


def test_the_table_has_every_topic():
    assert TOPICS == RIGHTS
    assert set(CELLS) <= set(TOPICS)


@names
def test_anonymous_is_sent_to_the_login(page, arguments, method, verb, db):
    response = ask(Client(), page, arguments, method)
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@names
def test_a_role_without_the_right_is_told_which_one_it_lacks(page, arguments, method, verb, browser_of):
    for role in ("", *Role):
        if role in ROLES_BY_VERB[verb]:
            continue
        response = ask(browser_of(role), page, arguments, method)
        assert response.status_code == 403, role
        assert str(verb) in response.content.decode()
        entry = AuditEntry.objects.first()
        assert (entry.who, entry.action, entry.outcome) == (role or "nobody", verb.name.lower(), "denied")


@names
def test_a_role_with_the_right_is_let_through(page, arguments, method, verb, browser_of, lonely_console, monkeypatch):
    monkeypatch.setattr("console.views.overview.ask", lambda task: None)
    for role in ROLES_BY_VERB[verb]:
        client = browser_of(role)
        client.raise_request_exception = False  # without a broker a page has nothing to show
        assert ask(client, page, arguments, method).status_code != 403, role
    assert not AuditEntry.objects.filter(outcome="denied").exists()


ABOUT_ONE = [row for row in PAGES if "name" in row[1]]


@pytest.mark.parametrize(("page", "arguments", "method", "verb"), ABOUT_ONE, ids=[page for page, *_ in ABOUT_ONE])
def test_a_right_elsewhere_is_none_here(page, arguments, method, verb, browser_of):
    response = ask(browser_of("operator", "elsewhere.>"), page, arguments, method)
    assert response.status_code == 403
    assert AuditEntry.objects.get().outcome == "denied"


@pytest.mark.parametrize("role", ["", *Role])
def test_a_socket_lets_each_role_watch_what_the_table_says(role, db):
    from console.access import may

    user = make_user(role)
    assert {name for name, verb in RIGHTS.items() if may(user, verb)} == {
        name for name, verb in TOPICS.items() if role in ROLES_BY_VERB[verb]
    }
