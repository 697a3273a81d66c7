"""Who may do what: every page, socket topic and API operation tried as every role, from one table each.

Whoever adds a url adds its row here, and nothing else: what each role may do stands in `console.access.roles`.
"""

import pytest
from django.test import Client
from django.urls import reverse

from console.access.roles import ROLES_BY_VERB, Role, Verb
from console.accounts.rate_limit import RateLimit
from console.api.common import auth
from console.api.common.operations import VERBS
from console.audit.models import AuditEntry
from console.broker.live.channels import CELLS, PERMISSIONS
from console.urls import allauth_urls
from tests.console.access.api_parity import SAME, SHOWN, takes_post
from tests.console.conftest import make_user

RUN = "11111111-1111-1111-1111-111111111111"
QUEUE, TOPIC = {"name": "q"}, {"name": "t"}

#: Page, arguments of its url, method, the right it needs.
PAGES = [
    ("overview", {}, "get", Verb.SEE),
    ("demo", {}, "post", Verb.DEMO),
    ("find", {}, "get", Verb.SEE),
    ("find-messages", {}, "get", Verb.BROWSE),
    ("start-search", {}, "post", Verb.BROWSE),
    ("search", {"search_id": RUN}, "get", Verb.BROWSE),
    ("cancel-search", {"search_id": RUN}, "post", Verb.BROWSE),
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
    ("delete-selector", QUEUE, "post", Verb.CREATE),
    ("purge", QUEUE, "post", Verb.REMOVE),
    ("messages", QUEUE, "get", Verb.BROWSE),
    ("message", {**QUEUE, "seq": 1}, "get", Verb.BROWSE),
    ("message-body", {**QUEUE, "seq": 1}, "get", Verb.READ),
    ("edit-message", {**QUEUE, "seq": 1}, "post", Verb.EDIT),
    ("message-action", QUEUE, "get", Verb.BROWSE),
    ("save-selector", QUEUE, "post", Verb.BROWSE),
    ("selector-delete", {**QUEUE, "saved_id": 1}, "post", Verb.BROWSE),
    ("reset-groups", QUEUE, "post", Verb.PAUSE),
    ("message-page", {"id": "ID:1"}, "get", Verb.BROWSE),
    ("resubmit-outcome", {"id": "ID:1"}, "get", Verb.BROWSE),
    ("dead-letters", {}, "get", Verb.BROWSE),
    ("jobs", {}, "get", Verb.BROWSE),
    ("job", {"job_id": RUN}, "get", Verb.BROWSE),
    ("control-job", {"job_id": RUN, "action": "pause"}, "post", Verb.BROWSE),
    ("send", {}, "get", Verb.SEND),
    ("template-delete", {"template_id": 1}, "post", Verb.SEND),
    ("scheduled", {}, "get", Verb.BROWSE),
    ("cancel-scheduled", {}, "post", Verb.REMOVE),
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
    ("draft-trials", {"draft_id": 1}, "get", Verb.SEE),
    ("draft-trial", {"draft_id": 1, "run_id": RUN}, "get", Verb.SEE),
    ("start-trial", {"draft_id": 1}, "post", Verb.ANALYSE),
    ("cancel-trial", {"draft_id": 1, "run_id": RUN}, "post", Verb.ANALYSE),
    ("route-preview", {}, "get", Verb.SEE),
    ("selector-tester", {}, "get", Verb.SEE),
    ("routing-findings", {}, "get", Verb.SEE),
    ("routing-import", {}, "post", Verb.DRAFT),
    ("routing-export", {}, "get", Verb.SEE),
    ("chart", {}, "get", Verb.SEE),
    ("depths", {}, "get", Verb.SEE),
    ("queue-chart", QUEUE, "get", Verb.SEE),
    ("topic-chart", TOPIC, "get", Verb.SEE),
    ("star", {}, "post", Verb.SEE),
    ("save-view", {"page": "queues"}, "post", Verb.SEE),
    ("forget-view", {"view_id": 1}, "post", Verb.SEE),
    ("queues-bulk", {}, "post", Verb.SEE),
    ("topics-bulk", {}, "post", Verb.SEE),
    ("topology", {}, "get", Verb.SEE),
    ("connector", {"connector": "to-b"}, "get", Verb.SEE),
    ("new-connector", {}, "get", Verb.BRIDGE),
    ("edit-connector", {"connector": "to-b"}, "post", Verb.BRIDGE),
    ("remove-connector", {"connector": "to-b"}, "post", Verb.BRIDGE),
    ("switch-connector", {"connector": "to-b", "action": "stop"}, "post", Verb.BRIDGE),
    ("connections", {}, "get", Verb.SEE),
    ("connection", {"connection_id": "x-1"}, "get", Verb.SEE),
    ("close-connection", {"connection_id": "x-1"}, "post", Verb.CLOSE),
    ("subscribers", {}, "get", Verb.SEE),
    ("subscription-messages", {"log": "c:sub"}, "get", Verb.BROWSE),
    ("delete-subscription", {"log": "c:sub"}, "post", Verb.CLOSE),
    ("alerts", {}, "get", Verb.SEE),
    ("new-alert", {}, "post", Verb.ALERT),
    ("edit-alert", {"rule_id": 1}, "get", Verb.ALERT),
    ("change-alert", {"rule_id": 1}, "post", Verb.ALERT),
    ("test-alert", {}, "post", Verb.ALERT),
    ("send-test-alert", {"rule_id": 1}, "post", Verb.ALERT),
    ("firing", {"firing_id": 1}, "get", Verb.SEE),
    ("analyses", {}, "get", Verb.SEE),
    ("ask-analysis", {"kind": "traffic"}, "get", Verb.ANALYSE),
    ("start-run", {}, "post", Verb.ANALYSE),
    ("run", {"run_id": RUN}, "get", Verb.SEE),
    ("cancel-run", {"run_id": RUN}, "post", Verb.ANALYSE),
    ("runs", {}, "get", Verb.SEE),
    ("compare-runs", {}, "get", Verb.SEE),
    ("pin-run", {"run_id": RUN}, "post", Verb.ANALYSE),
    ("download-table", {"run_id": RUN, "table": "traffic", "format": "csv"}, "get", Verb.SEE),
    ("reports", {}, "get", Verb.SEE),
    ("new-report", {}, "get", Verb.SCHEDULE),
    ("report-timing", {}, "get", Verb.SCHEDULE),
    ("report", {"report_id": 1}, "get", Verb.SEE),
    ("edit-report", {"report_id": 1}, "post", Verb.SCHEDULE),
    ("change-report", {"report_id": 1, "action": "switch"}, "post", Verb.SCHEDULE),
    ("edition", {"report_id": 1, "edition_id": 1}, "get", Verb.SEE),
    ("mail-preview", {"report_id": 1, "edition_id": 1}, "get", Verb.SEE),
    ("users", {}, "get", Verb.USERS),
    ("new-user", {}, "post", Verb.USERS),
    ("user", {"user_id": 1}, "get", Verb.USERS),
    ("change-user", {"user_id": 1, "action": "close"}, "post", Verb.USERS),
    ("groups", {}, "post", Verb.USERS),
    ("group", {"group_id": 999}, "get", Verb.USERS),
    ("delete-group", {"group_id": 999}, "post", Verb.USERS),
    ("roles", {}, "get", Verb.USERS),
    ("role-revoke", {"assignment_id": 999}, "post", Verb.USERS),
    ("role-grant", {"holder_id": 999}, "post", Verb.USERS),
    ("group-role-grant", {"holder_id": 999}, "post", Verb.USERS),
    ("masking", {}, "get", Verb.USERS),
    ("new-masking-rule", {}, "get", Verb.USERS),
    ("masking-rule", {"rule_id": 999}, "post", Verb.USERS),
    ("change-masking-rule", {"rule_id": 999, "action": "delete"}, "post", Verb.USERS),
    ("effective", {}, "get", Verb.USERS),
    ("impersonate", {}, "post", Verb.USERS),
    ("audit", {}, "get", Verb.AUDIT),
    ("audit-export", {"format": "csv"}, "get", Verb.AUDIT),
]
#: For everybody, or for everybody who is logged in.
OPEN = {
    "login", "logout", "invitation", "account", "change-password", "sessions-revoke", "healthz", "readyz", "theme",
    "keys", "bell-seen", "zone", "impersonate-end",
    "tokens", "revoke-token", "former-dead-letters", "former-message-action", "former-subscribers",
    "former-subscription-messages",
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
    "bell": Verb.SEE,
    "topology": Verb.SEE,
    "cluster": Verb.SEE,
    "subscribers": Verb.SEE,
    "alerts": Verb.SEE,
    "run": Verb.SEE,
    "runs": Verb.SEE,
    "job": Verb.BROWSE,
    "jobs": Verb.BROWSE,
}

_DEFINITIONS = {"definitions": {"version": 1}, "version": 1}
_MESSAGE = {"destination": "/queue/q"}
_REPORT = {"name": "r", "questions": []}
#: Operations of the API: id, method, path below /api/v1, what is sent, the right each needs.
OPERATIONS: list[tuple[str, str, str, dict | None, Verb]] = [
    ("get_overview", "get", "/overview", None, Verb.SEE),
    ("get_history", "get", "/history?destination=queue://q", None, Verb.SEE),
    ("get_depths", "get", "/depths?at=2026-01-01T00:00", None, Verb.SEE),
    ("list_destinations", "get", "/destinations", None, Verb.SEE),
    ("create_destination", "post", "/destinations", {"kind": "queue", "name": "q"}, Verb.CREATE),
    ("get_destination", "get", "/destinations/queue/q", None, Verb.SEE),
    ("delete_destination", "delete", "/destinations/queue/q", None, Verb.CREATE),
    ("list_selectors", "get", "/destinations/queue/q/selectors", None, Verb.SEE),
    ("forget_selector", "delete", "/destinations/queue/q/selectors?selector=a", None, Verb.CREATE),
    ("list_groups", "get", "/destinations/queue/q/groups", None, Verb.SEE),
    ("forget_groups", "delete", "/destinations/queue/q/groups", None, Verb.PAUSE),
    ("purge_queue", "post", "/destinations/queue/q/purge", None, Verb.REMOVE),
    ("pause_queue", "put", "/destinations/queue/q/paused", {"paused": True}, Verb.PAUSE),
    ("browse_messages", "get", "/queues/q/messages", None, Verb.BROWSE),
    ("get_message", "get", "/queues/q/messages/1", None, Verb.BROWSE),
    ("edit_message", "post", "/queues/q/messages/1/edited", _MESSAGE, Verb.EDIT),
    ("send_messages", "post", "/messages", _MESSAGE, Verb.SEND),
    ("list_jobs", "get", "/jobs", None, Verb.BROWSE),
    ("start_job", "post", "/jobs", {"action": "retry", "queue": "q", "reason": "r", "seqs": [1]}, Verb.RESUBMIT),
    ("preview_edit", "post", "/jobs/preview", {"action": "edit", "queue": "q", "edit": {"remove": ["n"]}}, Verb.EDIT),
    ("get_job", "get", f"/jobs/{RUN}", None, Verb.BROWSE),
    ("list_outcomes", "get", f"/jobs/{RUN}/outcomes", None, Verb.BROWSE),
    ("control_job", "post", f"/jobs/{RUN}/pause", None, Verb.RESUBMIT),
    ("set_job_rate", "put", f"/jobs/{RUN}/rate", {"rate": 5}, Verb.RESUBMIT),
    ("list_dead_letters", "get", "/dead-letters", None, Verb.BROWSE),
    ("get_radius", "get", "/dead-letters/q/radius?seq=1", None, Verb.BROWSE),
    ("list_scheduled", "get", "/scheduled", None, Verb.BROWSE),
    ("forget_scheduled", "delete", "/scheduled/1", None, Verb.REMOVE),
    ("get_definitions", "get", "/routing", None, Verb.SEE),
    ("apply_definitions", "put", "/routing", _DEFINITIONS, Verb.ROUTE),
    ("check_definitions", "post", "/routing/check", _DEFINITIONS, Verb.DRAFT),
    ("list_versions", "get", "/routing/history", None, Verb.SEE),
    ("revert_definitions", "post", "/routing/revert/1", None, Verb.ROUTE),
    ("export_definitions", "get", "/routing/export", None, Verb.SEE),
    ("import_definitions_file", "post", "/routing/import", {"xml": "<broker/>"}, Verb.ROUTE),
    ("list_drafts", "get", "/routing/drafts", None, Verb.SEE),
    ("create_draft", "post", "/routing/drafts", {"name": "d", **_DEFINITIONS}, Verb.DRAFT),
    ("get_draft", "get", "/routing/drafts/999", None, Verb.SEE),
    ("change_draft", "put", "/routing/drafts/999", {"name": "d", **_DEFINITIONS}, Verb.DRAFT),
    ("diff_draft", "get", "/routing/drafts/999/diff", None, Verb.SEE),
    ("list_remarks", "get", "/routing/drafts/999/remarks", None, Verb.SEE),
    ("start_trial", "post", "/routing/drafts/999/trials", {}, Verb.ANALYSE),
    ("list_findings", "get", "/routing/findings", None, Verb.SEE),
    ("search_messages", "get", "/search?q=x", None, Verb.BROWSE),
    ("start_search", "post", "/searches", {"q": "x"}, Verb.BROWSE),
    ("get_search", "get", f"/searches/{RUN}", None, Verb.BROWSE),
    ("cancel_search", "post", f"/searches/{RUN}/cancel", None, Verb.BROWSE),
    ("get_journey", "get", "/messages/ID:x:1/journey", None, Verb.BROWSE),
    ("step_draft", "post", "/routing/drafts/999/ask", {}, Verb.DRAFT),
    ("preview_route", "post", "/routing/preview", {"destination": "q"}, Verb.SEE),
    ("test_selector", "post", "/routing/selector", {"selector": "a = 1"}, Verb.SEE),
    ("list_networks", "get", "/networks", None, Verb.SEE),
    ("create_connector", "post", "/networks/connectors", {"name": "n", "uri": "tcp://h:1"}, Verb.BRIDGE),
    ("change_connector", "put", "/networks/connectors/to-b", {"uri": "tcp://h:1"}, Verb.BRIDGE),
    ("delete_connector", "delete", "/networks/connectors/to-b", None, Verb.BRIDGE),
    ("switch_connector", "put", "/networks/connectors/to-b/running", {"running": True}, Verb.BRIDGE),
    ("list_demand", "get", "/networks/connectors/to-b/demand", None, Verb.SEE),
    ("explain_bridge", "get", "/networks/connectors/to-b/why?destination=q", None, Verb.SEE),
    ("get_cluster", "get", "/networks/cluster", None, Verb.SEE),
    ("list_connections", "get", "/connections", None, Verb.SEE),
    ("close_connection", "delete", "/connections/x-1", None, Verb.CLOSE),
    ("list_subscriptions", "get", "/subscriptions", None, Verb.SEE),
    ("create_subscription", "post", "/subscriptions", {"client_id": "c", "name": "n", "topics": ["t"]}, Verb.CREATE),
    ("browse_subscription", "get", "/subscriptions/c:n/messages", None, Verb.BROWSE),
    ("delete_subscription", "delete", "/subscriptions/c:n", None, Verb.CLOSE),
    ("list_analyses", "get", "/analyses", None, Verb.SEE),
    ("list_runs", "get", "/analyses/runs", None, Verb.SEE),
    ("start_run", "post", "/analyses/runs", {"kind": "nonsense"}, Verb.ANALYSE),
    ("get_run", "get", f"/analyses/runs/{RUN}", None, Verb.SEE),
    ("get_result", "get", f"/analyses/runs/{RUN}/result", None, Verb.SEE),
    ("pin_run", "put", f"/analyses/runs/{RUN}/pin", {"pinned": True}, Verb.ANALYSE),
    ("cancel_run", "post", f"/analyses/runs/{RUN}/cancel", None, Verb.ANALYSE),
    ("list_reports", "get", "/reports", None, Verb.SEE),
    ("create_report", "post", "/reports", _REPORT, Verb.SCHEDULE),
    ("get_report", "get", "/reports/999", None, Verb.SEE),
    ("change_report", "put", "/reports/999", _REPORT, Verb.SCHEDULE),
    ("delete_report", "delete", "/reports/999", None, Verb.SCHEDULE),
    ("run_report", "post", "/reports/999/run", None, Verb.SCHEDULE),
    ("list_editions", "get", "/reports/999/editions", None, Verb.SEE),
    ("list_alert_rules", "get", "/alerts/rules", None, Verb.SEE),
    ("create_alert_rule", "post", "/alerts/rules", {}, Verb.ALERT),
    ("change_alert_rule", "put", "/alerts/rules/999", {}, Verb.ALERT),
    ("step_alert_rule", "post", "/alerts/rules/999", {"action": "hear"}, Verb.ALERT),
    ("delete_alert_rule", "delete", "/alerts/rules/999", None, Verb.ALERT),
    ("test_alert_rule", "post", "/alerts/test", {}, Verb.ALERT),
    ("send_test_of_alert_rule", "post", "/alerts/rules/999/test", None, Verb.ALERT),
    ("list_firings", "get", "/alerts/firings", None, Verb.SEE),
    ("list_deliveries", "get", "/alerts/firings/999/deliveries", None, Verb.SEE),
    ("list_entries", "get", "/audit", None, Verb.AUDIT),
    ("list_nodes", "get", "/nodes", None, Verb.SEE),
    ("get_me", "get", "/me", None, Verb.SEE),
    ("list_users", "get", "/users", None, Verb.USERS),
    ("create_user", "post", "/users", {"name": ""}, Verb.USERS),
    ("switch_user", "put", "/users/999/active", {"active": False}, Verb.USERS),
    ("unlock_user", "post", "/users/999/unlock", None, Verb.USERS),
    ("reset_second_factor", "delete", "/users/999/second-factor", None, Verb.USERS),
    ("reset_password", "post", "/users/999/way-in", {"way": "link"}, Verb.USERS),
    ("assign_role", "post", "/users/999/assignments", {"role": "viewer"}, Verb.USERS),
    ("withdraw_role", "delete", "/users/999/assignments/1", None, Verb.USERS),
    ("list_user_groups", "get", "/groups", None, Verb.USERS),
    ("create_group", "post", "/groups", {"name": ""}, Verb.USERS),
    ("delete_group", "delete", "/groups/999", None, Verb.USERS),
    ("assign_group_role", "post", "/groups/999/assignments", {"role": "viewer"}, Verb.USERS),
    ("withdraw_group_role", "delete", "/groups/999/assignments/1", None, Verb.USERS),
    ("set_membership", "put", "/groups/999/members/1", {"member": False}, Verb.USERS),
    ("get_effective_rights", "get", "/effective/role/viewer", None, Verb.USERS),
    ("list_masking_rules", "get", "/masking", None, Verb.USERS),
    ("create_masking_rule", "post", "/masking", {}, Verb.USERS),
    ("change_masking_rule", "put", "/masking/999", {}, Verb.USERS),
    ("step_masking_rule", "post", "/masking/999", {"action": "first"}, Verb.USERS),
    ("delete_masking_rule", "delete", "/masking/999", None, Verb.USERS),
    ("list_tokens", "get", "/tokens", None, Verb.SEE),
    ("create_token", "post", "/tokens", {"name": "", "verbs": []}, Verb.SEE),
    ("revoke_token", "delete", "/tokens/999", None, Verb.SEE),
]


def ask(client: Client, page: str, arguments: dict, method: str):
    return getattr(client, method)(reverse(page, kwargs=arguments))


def test_the_table_has_every_page():
    from console.urls import urlpatterns

    assert {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")} == {page for page, *_ in PAGES} | OPEN


def test_the_table_has_every_topic():
    assert TOPICS == PERMISSIONS
    assert set(CELLS) <= set(TOPICS)


def test_anonymous_is_sent_to_the_login(db):
    client = Client()
    for page, arguments, method, _verb in PAGES:
        response = ask(client, page, arguments, method)
        assert response.status_code == 302, page
        assert response["Location"].startswith(reverse("login")), page


@pytest.mark.parametrize("role", ["", *Role])
def test_a_role_without_the_right_is_told_which_one_it_lacks(role, browser_of):
    client = browser_of(role)
    for page, arguments, method, verb in PAGES:
        if role in ROLES_BY_VERB[verb]:
            continue
        response = ask(client, page, arguments, method)
        assert response.status_code == 403, page
        assert str(verb) in response.content.decode(), page
        entry = AuditEntry.objects.first()
        assert (entry.who, entry.action, entry.outcome) == (role or "nobody", verb.name.lower(), "denied"), page


@pytest.mark.parametrize("role", list(Role))
def test_a_role_with_the_right_is_let_through(role, browser_of, lonely_console, monkeypatch):
    monkeypatch.setattr("console.metrics.views.overview.enqueue", lambda task: None)
    client = browser_of(role)
    client.raise_request_exception = False  # without a broker a page has nothing to show
    for page, arguments, method, verb in PAGES:
        if role in ROLES_BY_VERB[verb]:
            assert ask(client, page, arguments, method).status_code != 403, page
    assert not AuditEntry.objects.filter(outcome="denied").exists()


def test_a_right_elsewhere_is_none_here(browser_of):
    client = browser_of("operator", "elsewhere.>")
    about_one = [row for row in PAGES if "name" in row[1]]
    for page, arguments, method, _verb in about_one:
        assert ask(client, page, arguments, method).status_code == 403, page
    assert list(AuditEntry.objects.values_list("outcome", flat=True)) == ["denied"] * len(about_one)


@pytest.mark.parametrize("role", ["", *Role])
def test_a_socket_lets_each_role_watch_what_the_table_says(role, db):
    from console.access.permissions import has_permission

    user = make_user(role)
    assert {name for name, verb in PERMISSIONS.items() if has_permission(user, verb)} == {
        name for name, verb in TOPICS.items() if role in ROLES_BY_VERB[verb]
    }


def call(client: Client, method: str, path: str, body: dict | None):
    return getattr(client, method)(f"/api/v1{path}", body, content_type="application/json")


def test_the_table_has_every_operation():
    assert {id: verb for id, *_, verb in OPERATIONS} == VERBS


def test_who_shows_nothing_gets_a_problem_and_no_login_page(db):
    client = Client()
    for id, method, path, body, _verb in OPERATIONS:
        response = call(client, method, path, body)
        assert (response.status_code, response["Content-Type"]) == (401, "application/problem+json"), id


@pytest.mark.parametrize("role", ["", *Role])
def test_an_operation_is_for_the_roles_with_the_right(role, browser_of, lonely_console, monkeypatch):
    monkeypatch.setattr(auth, "LIMIT", RateLimit(per_second=1000, burst=1000))
    client = browser_of(role)
    for id, method, path, body, verb in OPERATIONS:
        response = call(client, method, path, body)
        if role in ROLES_BY_VERB[verb]:
            assert response.status_code not in (401, 403, 429), id
            continue
        assert (response.status_code, response["Content-Type"]) == (403, "application/problem+json"), id
        assert str(verb) in response.json()["detail"], id
        entry = AuditEntry.objects.first()
        assert (entry.who, entry.via, entry.outcome) == (role or "nobody", "api", "denied"), id


def test_without_the_right_nobody_is_told_what_else_is_wrong(browser_of):
    client = browser_of("")
    for id, method, path, body, _verb in OPERATIONS:
        if body is not None:
            assert call(client, method, path, {"nonsense": []}).status_code == 403, id


def test_whatever_a_page_changes_a_program_can_change_too():
    from console.urls import urlpatterns

    own = {pattern.name: pattern.callback for pattern in urlpatterns if hasattr(pattern, "name")}
    of_others = {pattern.name for pattern in allauth_urls}
    assert {name for name, view in own.items() if name not in of_others and takes_post(view)} == set(SAME)
    operations = set().union(*(same for same in SAME.values() if not isinstance(same, str)))
    assert operations <= set(VERBS)


def test_whatever_a_page_shows_a_program_can_read_too():
    from console.urls import urlpatterns

    names = {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")}
    assert names - set(SAME) - {pattern.name for pattern in allauth_urls} == set(SHOWN)
    assert set().union(*(same for same in SHOWN.values() if not isinstance(same, str))) <= set(VERBS)
