"""Test every page, socket channel and API operation as every role, from one table each.

Whoever adds a url adds its row here, and nothing else: what each role may do stands in `console.access.roles`.
"""

import pytest
from django.test import Client
from django.urls import reverse

from console.access.roles import ROLES_BY_PERMISSION, Permission, Role
from console.accounts.rate_limit import RateLimit
from console.api.common import auth
from console.api.common.operations import OPERATION_PERMISSIONS
from console.audit.models import AuditEntry
from console.broker.live.channels import CELLS, PERMISSIONS
from console.urls import allauth_urls
from tests.console.access.api_parity import SAME, SHOWN, takes_post
from tests.console.conftest import make_user

RUN = "11111111-1111-1111-1111-111111111111"
QUEUE, TOPIC = {"name": "q"}, {"name": "t"}

#: Page, arguments of its url, method, the right it needs.
PAGES = [
    ("overview", {}, "get", Permission.SEE),
    ("demo", {}, "post", Permission.DEMO),
    ("find", {}, "get", Permission.SEE),
    ("find-messages", {}, "get", Permission.BROWSE),
    ("start-search", {}, "post", Permission.BROWSE),
    ("search", {"search_id": RUN}, "get", Permission.BROWSE),
    ("cancel-search", {"search_id": RUN}, "post", Permission.BROWSE),
    ("palette", {}, "get", Permission.SEE),
    ("queues", {}, "get", Permission.SEE),
    ("topics", {}, "get", Permission.SEE),
    ("queue", QUEUE, "get", Permission.SEE),
    ("topic", TOPIC, "get", Permission.SEE),
    ("new-queue", {}, "get", Permission.CREATE),
    ("new-topic", {}, "post", Permission.CREATE),
    ("delete-queue", QUEUE, "post", Permission.CREATE),
    ("delete-topic", TOPIC, "post", Permission.CREATE),
    ("pause-queue", QUEUE, "post", Permission.PAUSE),
    ("resume-queue", QUEUE, "post", Permission.PAUSE),
    ("delete-selector", QUEUE, "post", Permission.CREATE),
    ("purge", QUEUE, "post", Permission.REMOVE),
    ("messages", QUEUE, "get", Permission.BROWSE),
    ("message", {**QUEUE, "seq": 1}, "get", Permission.BROWSE),
    ("message-body", {**QUEUE, "seq": 1}, "get", Permission.READ),
    ("edit-message", {**QUEUE, "seq": 1}, "post", Permission.EDIT),
    ("message-action", QUEUE, "get", Permission.BROWSE),
    ("save-selector", QUEUE, "post", Permission.BROWSE),
    ("selector-delete", {**QUEUE, "saved_id": 1}, "post", Permission.BROWSE),
    ("reset-groups", QUEUE, "post", Permission.PAUSE),
    ("message-page", {"id": "ID:1"}, "get", Permission.BROWSE),
    ("resubmit-outcome", {"id": "ID:1"}, "get", Permission.BROWSE),
    ("dead-letters", {}, "get", Permission.BROWSE),
    ("jobs", {}, "get", Permission.BROWSE),
    ("job", {"job_id": RUN}, "get", Permission.BROWSE),
    ("control-job", {"job_id": RUN, "action": "pause"}, "post", Permission.BROWSE),
    ("send", {}, "get", Permission.SEND),
    ("template-delete", {"template_id": 1}, "post", Permission.SEND),
    ("scheduled", {}, "get", Permission.BROWSE),
    ("cancel-scheduled", {}, "post", Permission.REMOVE),
    ("transactions", {}, "get", Permission.BROWSE),
    ("commit-transaction", {}, "post", Permission.REMOVE),
    ("rollback-transaction", {}, "post", Permission.REMOVE),
    ("routing", {}, "get", Permission.SEE),
    ("choose-definition", {}, "get", Permission.DRAFT),
    ("new-definition", {"kind": "compositeQueue"}, "get", Permission.DRAFT),
    ("edit-definition", {}, "post", Permission.DRAFT),
    ("check-definition", {"kind": "compositeQueue"}, "post", Permission.DRAFT),
    ("delete-definition", {}, "post", Permission.DRAFT),
    ("routing-policies", {}, "get", Permission.SEE),
    ("routing-changes", {}, "get", Permission.SEE),
    ("routing-version", {"number": 1}, "get", Permission.SEE),
    ("revert-routing", {"number": 1}, "post", Permission.ROUTE),
    ("undo-routing", {}, "post", Permission.ROUTE),
    ("draft", {"draft_id": 1}, "get", Permission.SEE),
    ("draft-step", {"draft_id": 1, "what": "remark"}, "post", Permission.DRAFT),
    ("draft-trials", {"draft_id": 1}, "get", Permission.SEE),
    ("draft-trial", {"draft_id": 1, "run_id": RUN}, "get", Permission.SEE),
    ("start-trial", {"draft_id": 1}, "post", Permission.ANALYSE),
    ("cancel-trial", {"draft_id": 1, "run_id": RUN}, "post", Permission.ANALYSE),
    ("route-preview", {}, "get", Permission.SEE),
    ("selector-tester", {}, "get", Permission.SEE),
    ("routing-findings", {}, "get", Permission.SEE),
    ("routing-import", {}, "post", Permission.DRAFT),
    ("routing-export", {}, "get", Permission.SEE),
    ("chart", {}, "get", Permission.SEE),
    ("depths", {}, "get", Permission.SEE),
    ("queue-chart", QUEUE, "get", Permission.SEE),
    ("topic-chart", TOPIC, "get", Permission.SEE),
    ("star", {}, "post", Permission.SEE),
    ("save-view", {"page": "queues"}, "post", Permission.SEE),
    ("forget-view", {"view_id": 1}, "post", Permission.SEE),
    ("queues-bulk", {}, "post", Permission.SEE),
    ("topics-bulk", {}, "post", Permission.SEE),
    ("topology", {}, "get", Permission.SEE),
    ("connector", {"connector": "to-b"}, "get", Permission.SEE),
    ("new-connector", {}, "get", Permission.BRIDGE),
    ("edit-connector", {"connector": "to-b"}, "post", Permission.BRIDGE),
    ("remove-connector", {"connector": "to-b"}, "post", Permission.BRIDGE),
    ("switch-connector", {"connector": "to-b", "action": "stop"}, "post", Permission.BRIDGE),
    ("drain-node", {"node": "n", "action": "drain"}, "post", Permission.NODES),
    ("rebalance-nodes", {}, "post", Permission.NODES),
    ("shards", {}, "get", Permission.SEE),
    ("checks", {}, "get", Permission.CHECK),
    ("run-checks", {}, "post", Permission.CHECK),
    ("shard", {"number": 0}, "get", Permission.SEE),
    ("add-shard", {}, "post", Permission.SHARDS),
    ("change-shard", {"number": 1, "action": "drain"}, "post", Permission.SHARDS),
    ("move-family", {}, "post", Permission.SHARDS),
    ("backups", {}, "get", Permission.BACKUP),
    ("start-backup", {}, "post", Permission.BACKUP),
    ("backup-schedule", {}, "post", Permission.BACKUP),
    ("download-backup", {"backup_id": 1}, "get", Permission.BACKUP),
    ("delete-backup", {"backup_id": 1}, "post", Permission.BACKUP),
    ("connections", {}, "get", Permission.SEE),
    ("connection", {"connection_id": "x-1"}, "get", Permission.SEE),
    ("close-connection", {"connection_id": "x-1"}, "post", Permission.CLOSE),
    ("subscribers", {}, "get", Permission.SEE),
    ("subscription-messages", {"log": "c:sub"}, "get", Permission.BROWSE),
    ("delete-subscription", {"log": "c:sub"}, "post", Permission.CLOSE),
    ("objectives", {}, "get", Permission.SEE),
    ("new-objective", {}, "post", Permission.ALERT),
    ("edit-objective", {"objective_id": 1}, "get", Permission.ALERT),
    ("delete-objective", {"objective_id": 1}, "post", Permission.ALERT),
    ("alerts", {}, "get", Permission.SEE),
    ("new-alert", {}, "post", Permission.ALERT),
    ("edit-alert", {"rule_id": 1}, "get", Permission.ALERT),
    ("change-alert", {"rule_id": 1}, "post", Permission.ALERT),
    ("test-alert", {}, "post", Permission.ALERT),
    ("send-test-alert", {"rule_id": 1}, "post", Permission.ALERT),
    ("firing", {"firing_id": 1}, "get", Permission.SEE),
    ("analyses", {}, "get", Permission.SEE),
    ("ask-analysis", {"kind": "traffic"}, "get", Permission.ANALYSE),
    ("start-run", {}, "post", Permission.ANALYSE),
    ("run", {"run_id": RUN}, "get", Permission.SEE),
    ("cancel-run", {"run_id": RUN}, "post", Permission.ANALYSE),
    ("tables", {}, "get", Permission.SEE),
    ("rebuild-tables", {}, "post", Permission.ANALYSE),
    ("runs", {}, "get", Permission.SEE),
    ("compare-runs", {}, "get", Permission.SEE),
    ("pin-run", {"run_id": RUN}, "post", Permission.ANALYSE),
    ("download-table", {"run_id": RUN, "table": "traffic", "format": "csv"}, "get", Permission.SEE),
    ("sql", {}, "get", Permission.SQL),
    ("run-sql", {}, "post", Permission.SQL),
    ("save-query", {}, "post", Permission.SQL),
    ("delete-query", {"query_id": 1}, "post", Permission.SQL),
    ("export-run", {"run_id": RUN, "format": "html"}, "get", Permission.SEE),
    ("reports", {}, "get", Permission.SEE),
    ("new-report", {}, "get", Permission.SCHEDULE),
    ("report-timing", {}, "get", Permission.SCHEDULE),
    ("report", {"report_id": 1}, "get", Permission.SEE),
    ("edit-report", {"report_id": 1}, "post", Permission.SCHEDULE),
    ("change-report", {"report_id": 1, "action": "switch"}, "post", Permission.SCHEDULE),
    ("edition", {"report_id": 1, "edition_id": 1}, "get", Permission.SEE),
    ("export-edition", {"report_id": 1, "edition_id": 1, "format": "html"}, "get", Permission.SEE),
    ("mail-preview", {"report_id": 1, "edition_id": 1}, "get", Permission.SEE),
    ("users", {}, "get", Permission.USERS),
    ("new-user", {}, "post", Permission.USERS),
    ("user", {"user_id": 1}, "get", Permission.USERS),
    ("change-user", {"user_id": 1, "action": "close"}, "post", Permission.USERS),
    ("groups", {}, "post", Permission.USERS),
    ("group", {"group_id": 999}, "get", Permission.USERS),
    ("delete-group", {"group_id": 999}, "post", Permission.USERS),
    ("roles", {}, "get", Permission.USERS),
    ("role-revoke", {"assignment_id": 999}, "post", Permission.USERS),
    ("role-grant", {"holder_id": 999}, "post", Permission.USERS),
    ("group-role-grant", {"holder_id": 999}, "post", Permission.USERS),
    ("masking", {}, "get", Permission.USERS),
    ("new-masking-rule", {}, "get", Permission.USERS),
    ("masking-rule", {"rule_id": 999}, "post", Permission.USERS),
    ("change-masking-rule", {"rule_id": 999, "action": "delete"}, "post", Permission.USERS),
    ("effective", {}, "get", Permission.USERS),
    ("impersonate", {}, "post", Permission.USERS),
    ("audit", {}, "get", Permission.AUDIT),
    ("audit-export", {"format": "csv"}, "get", Permission.AUDIT),
]
#: For everybody, or for everybody who is logged in.
OPEN = {
    "login", "logout", "invitation", "account", "change-password", "sessions-revoke", "healthz", "readyz", "theme",
    "keys", "bell-seen", "zone", "impersonate-end",
    "tokens", "revoke-token",
    *(pattern.name for pattern in allauth_urls),
}  # fmt: skip

#: Topics of the live socket, and the right each needs.
TOPICS = {
    "overview": Permission.SEE,
    "list": Permission.SEE,
    "queue": Permission.SEE,
    "topic": Permission.SEE,
    "connections": Permission.SEE,
    "graph": Permission.SEE,
    "bell": Permission.SEE,
    "topology": Permission.SEE,
    "cluster": Permission.SEE,
    "subscribers": Permission.SEE,
    "alerts": Permission.SEE,
    "run": Permission.SEE,
    "runs": Permission.SEE,
    "job": Permission.BROWSE,
    "jobs": Permission.BROWSE,
}

_DEFINITIONS = {"definitions": {"version": 1}, "version": 1}
_MESSAGE = {"destination": "/queue/q"}
_REPORT = {"name": "r", "questions": []}
#: Operations of the API: id, method, path below /api/v1, what is sent, the right each needs.
OPERATIONS: list[tuple[str, str, str, dict | None, Permission]] = [
    ("get_overview", "get", "/overview", None, Permission.SEE),
    ("get_history", "get", "/history?destination=queue://q", None, Permission.SEE),
    ("get_depths", "get", "/depths?at=2026-01-01T00:00", None, Permission.SEE),
    ("list_destinations", "get", "/destinations", None, Permission.SEE),
    ("create_destination", "post", "/destinations", {"kind": "queue", "name": "q"}, Permission.CREATE),
    ("get_destination", "get", "/destinations/queue/q", None, Permission.SEE),
    ("delete_destination", "delete", "/destinations/queue/q", None, Permission.CREATE),
    ("list_selectors", "get", "/destinations/queue/q/selectors", None, Permission.SEE),
    ("forget_selector", "delete", "/destinations/queue/q/selectors?selector=a", None, Permission.CREATE),
    ("list_groups", "get", "/destinations/queue/q/groups", None, Permission.SEE),
    ("forget_groups", "delete", "/destinations/queue/q/groups", None, Permission.PAUSE),
    ("purge_queue", "post", "/destinations/queue/q/purge", None, Permission.REMOVE),
    ("pause_queue", "put", "/destinations/queue/q/paused", {"paused": True}, Permission.PAUSE),
    ("browse_messages", "get", "/queues/q/messages", None, Permission.BROWSE),
    ("get_message", "get", "/queues/q/messages/1", None, Permission.BROWSE),
    ("edit_message", "post", "/queues/q/messages/1/edited", _MESSAGE, Permission.EDIT),
    ("send_messages", "post", "/messages", _MESSAGE, Permission.SEND),
    ("list_jobs", "get", "/jobs", None, Permission.BROWSE),
    ("start_job", "post", "/jobs", {"action": "retry", "queue": "q", "reason": "r", "seqs": [1]}, Permission.RESUBMIT),
    (
        "preview_edit",
        "post",
        "/jobs/preview",
        {"action": "edit", "queue": "q", "edit": {"remove": ["n"]}},
        Permission.EDIT,
    ),
    ("get_job", "get", f"/jobs/{RUN}", None, Permission.BROWSE),
    ("list_outcomes", "get", f"/jobs/{RUN}/outcomes", None, Permission.BROWSE),
    ("control_job", "post", f"/jobs/{RUN}/pause", None, Permission.RESUBMIT),
    ("set_job_rate", "put", f"/jobs/{RUN}/rate", {"rate": 5}, Permission.RESUBMIT),
    ("list_dead_letters", "get", "/dead-letters", None, Permission.BROWSE),
    ("get_radius", "get", "/dead-letters/q/radius?seq=1", None, Permission.BROWSE),
    ("list_scheduled", "get", "/scheduled", None, Permission.BROWSE),
    ("forget_scheduled", "delete", "/scheduled/1", None, Permission.REMOVE),
    ("list_transactions", "get", "/transactions", None, Permission.BROWSE),
    ("commit_transaction", "post", "/transactions/XA:1:61:62/commit", None, Permission.REMOVE),
    ("roll_back_transaction", "post", "/transactions/XA:1:61:62/rollback", None, Permission.REMOVE),
    ("get_definitions", "get", "/routing", None, Permission.SEE),
    ("apply_definitions", "put", "/routing", _DEFINITIONS, Permission.ROUTE),
    ("check_definitions", "post", "/routing/check", _DEFINITIONS, Permission.DRAFT),
    ("list_versions", "get", "/routing/history", None, Permission.SEE),
    ("revert_definitions", "post", "/routing/revert/1", None, Permission.ROUTE),
    ("export_definitions", "get", "/routing/export", None, Permission.SEE),
    ("import_definitions_file", "post", "/routing/import", {"xml": "<broker/>"}, Permission.ROUTE),
    ("list_drafts", "get", "/routing/drafts", None, Permission.SEE),
    ("create_draft", "post", "/routing/drafts", {"name": "d", **_DEFINITIONS}, Permission.DRAFT),
    ("get_draft", "get", "/routing/drafts/999", None, Permission.SEE),
    ("change_draft", "put", "/routing/drafts/999", {"name": "d", **_DEFINITIONS}, Permission.DRAFT),
    ("diff_draft", "get", "/routing/drafts/999/diff", None, Permission.SEE),
    ("list_remarks", "get", "/routing/drafts/999/remarks", None, Permission.SEE),
    ("start_trial", "post", "/routing/drafts/999/trials", {}, Permission.ANALYSE),
    ("list_findings", "get", "/routing/findings", None, Permission.SEE),
    ("search_messages", "get", "/search?q=x", None, Permission.BROWSE),
    ("start_search", "post", "/searches", {"q": "x"}, Permission.BROWSE),
    ("get_search", "get", f"/searches/{RUN}", None, Permission.BROWSE),
    ("cancel_search", "post", f"/searches/{RUN}/cancel", None, Permission.BROWSE),
    ("get_journey", "get", "/messages/ID:x:1/journey", None, Permission.BROWSE),
    ("step_draft", "post", "/routing/drafts/999/ask", {}, Permission.DRAFT),
    ("preview_route", "post", "/routing/preview", {"destination": "q"}, Permission.SEE),
    ("test_selector", "post", "/routing/selector", {"selector": "a = 1"}, Permission.SEE),
    ("list_networks", "get", "/networks", None, Permission.SEE),
    ("create_connector", "post", "/networks/connectors", {"name": "n", "uri": "tcp://h:1"}, Permission.BRIDGE),
    ("change_connector", "put", "/networks/connectors/to-b", {"uri": "tcp://h:1"}, Permission.BRIDGE),
    ("delete_connector", "delete", "/networks/connectors/to-b", None, Permission.BRIDGE),
    ("switch_connector", "put", "/networks/connectors/to-b/running", {"running": True}, Permission.BRIDGE),
    ("list_demand", "get", "/networks/connectors/to-b/demand", None, Permission.SEE),
    ("explain_bridge", "get", "/networks/connectors/to-b/why?destination=q", None, Permission.SEE),
    ("get_cluster", "get", "/networks/cluster", None, Permission.SEE),
    ("list_connections", "get", "/connections", None, Permission.SEE),
    ("close_connection", "delete", "/connections/x-1", None, Permission.CLOSE),
    ("list_subscriptions", "get", "/subscriptions", None, Permission.SEE),
    (
        "create_subscription",
        "post",
        "/subscriptions",
        {"client_id": "c", "name": "n", "topics": ["t"]},
        Permission.CREATE,
    ),
    ("browse_subscription", "get", "/subscriptions/c:n/messages", None, Permission.BROWSE),
    ("delete_subscription", "delete", "/subscriptions/c:n", None, Permission.CLOSE),
    ("list_analyses", "get", "/analyses", None, Permission.SEE),
    ("get_tables", "get", "/analyses/tables", None, Permission.SEE),
    ("rebuild_tables", "post", "/analyses/tables/rebuild", {}, Permission.ANALYSE),
    ("list_runs", "get", "/analyses/runs", None, Permission.SEE),
    ("start_run", "post", "/analyses/runs", {"kind": "nonsense"}, Permission.ANALYSE),
    ("get_run", "get", f"/analyses/runs/{RUN}", None, Permission.SEE),
    ("get_result", "get", f"/analyses/runs/{RUN}/result", None, Permission.SEE),
    ("export_run", "get", f"/analyses/runs/{RUN}/export?format=html", None, Permission.SEE),
    ("pin_run", "put", f"/analyses/runs/{RUN}/pin", {"pinned": True}, Permission.ANALYSE),
    ("cancel_run", "post", f"/analyses/runs/{RUN}/cancel", None, Permission.ANALYSE),
    ("get_sql_schema", "get", "/sql/schema", None, Permission.SQL),
    ("run_sql", "post", "/sql/runs", {"statement": ""}, Permission.SQL),
    ("list_sql_queries", "get", "/sql/queries", None, Permission.SQL),
    ("create_sql_query", "post", "/sql/queries", {"name": "", "statement": ""}, Permission.SQL),
    ("get_sql_query", "get", "/sql/queries/999", None, Permission.SQL),
    ("change_sql_query", "put", "/sql/queries/999", {"name": "", "statement": ""}, Permission.SQL),
    ("delete_sql_query", "delete", "/sql/queries/999", None, Permission.SQL),
    ("run_sql_query", "post", "/sql/queries/999/run", {}, Permission.SQL),
    ("list_reports", "get", "/reports", None, Permission.SEE),
    ("create_report", "post", "/reports", _REPORT, Permission.SCHEDULE),
    ("get_report", "get", "/reports/999", None, Permission.SEE),
    ("change_report", "put", "/reports/999", _REPORT, Permission.SCHEDULE),
    ("delete_report", "delete", "/reports/999", None, Permission.SCHEDULE),
    ("run_report", "post", "/reports/999/run", None, Permission.SCHEDULE),
    ("export_edition", "get", "/reports/999/editions/1/export?format=html", None, Permission.SEE),
    ("list_editions", "get", "/reports/999/editions", None, Permission.SEE),
    ("list_objectives", "get", "/objectives", None, Permission.SEE),
    ("create_objective", "post", "/objectives", {}, Permission.ALERT),
    ("get_objective", "get", "/objectives/999", None, Permission.SEE),
    ("change_objective", "put", "/objectives/999", {}, Permission.ALERT),
    ("delete_objective", "delete", "/objectives/999", None, Permission.ALERT),
    ("list_alert_rules", "get", "/alerts/rules", None, Permission.SEE),
    ("create_alert_rule", "post", "/alerts/rules", {}, Permission.ALERT),
    ("change_alert_rule", "put", "/alerts/rules/999", {}, Permission.ALERT),
    ("step_alert_rule", "post", "/alerts/rules/999", {"action": "hear"}, Permission.ALERT),
    ("delete_alert_rule", "delete", "/alerts/rules/999", None, Permission.ALERT),
    ("test_alert_rule", "post", "/alerts/test", {}, Permission.ALERT),
    ("send_test_of_alert_rule", "post", "/alerts/rules/999/test", None, Permission.ALERT),
    ("list_firings", "get", "/alerts/firings", None, Permission.SEE),
    ("list_deliveries", "get", "/alerts/firings/999/deliveries", None, Permission.SEE),
    ("list_entries", "get", "/audit", None, Permission.AUDIT),
    ("list_nodes", "get", "/nodes", None, Permission.SEE),
    ("drain_node", "put", "/nodes/n/draining", {"draining": True}, Permission.NODES),
    ("rebalance_nodes", "post", "/nodes/rebalance", None, Permission.NODES),
    ("get_checks", "get", "/checks", None, Permission.CHECK),
    ("run_checks", "post", "/checks", None, Permission.CHECK),
    ("list_shards", "get", "/shards", None, Permission.SEE),
    ("list_families", "get", "/shards/0/families", None, Permission.SEE),
    ("add_shard", "post", "/shards", {"url": "redis://127.0.0.1:1"}, Permission.SHARDS),
    ("drain_shard", "put", "/shards/1/draining", {"draining": True}, Permission.SHARDS),
    ("remove_shard", "delete", "/shards/1", None, Permission.SHARDS),
    ("move_family", "post", "/shards/moves", {"family": "queue://q", "shard": 1}, Permission.SHARDS),
    ("list_backups", "get", "/backups", None, Permission.BACKUP),
    ("start_backup", "post", "/backups", {}, Permission.BACKUP),
    ("get_backup", "get", "/backups/999", None, Permission.BACKUP),
    ("download_backup", "get", "/backups/999/file", None, Permission.BACKUP),
    ("delete_backup", "delete", "/backups/999", None, Permission.BACKUP),
    ("get_backup_schedule", "get", "/backups/schedule", None, Permission.BACKUP),
    ("change_backup_schedule", "put", "/backups/schedule", {}, Permission.BACKUP),
    ("get_me", "get", "/me", None, Permission.SEE),
    ("list_users", "get", "/users", None, Permission.USERS),
    ("create_user", "post", "/users", {"name": ""}, Permission.USERS),
    ("switch_user", "put", "/users/999/active", {"active": False}, Permission.USERS),
    ("unlock_user", "post", "/users/999/unlock", None, Permission.USERS),
    ("reset_second_factor", "delete", "/users/999/second-factor", None, Permission.USERS),
    ("reset_password", "post", "/users/999/way-in", {"way": "link"}, Permission.USERS),
    ("assign_role", "post", "/users/999/assignments", {"role": "viewer"}, Permission.USERS),
    ("withdraw_role", "delete", "/users/999/assignments/1", None, Permission.USERS),
    ("list_user_groups", "get", "/groups", None, Permission.USERS),
    ("create_group", "post", "/groups", {"name": ""}, Permission.USERS),
    ("delete_group", "delete", "/groups/999", None, Permission.USERS),
    ("assign_group_role", "post", "/groups/999/assignments", {"role": "viewer"}, Permission.USERS),
    ("withdraw_group_role", "delete", "/groups/999/assignments/1", None, Permission.USERS),
    ("set_membership", "put", "/groups/999/members/1", {"member": False}, Permission.USERS),
    ("get_effective_rights", "get", "/effective/role/viewer", None, Permission.USERS),
    ("list_masking_rules", "get", "/masking", None, Permission.USERS),
    ("create_masking_rule", "post", "/masking", {}, Permission.USERS),
    ("change_masking_rule", "put", "/masking/999", {}, Permission.USERS),
    ("step_masking_rule", "post", "/masking/999", {"action": "first"}, Permission.USERS),
    ("delete_masking_rule", "delete", "/masking/999", None, Permission.USERS),
    ("list_tokens", "get", "/tokens", None, Permission.SEE),
    ("create_token", "post", "/tokens", {"name": "", "permissions": []}, Permission.SEE),
    ("revoke_token", "delete", "/tokens/999", None, Permission.SEE),
]

#: No role, and all: what is between nobody and an admin is one table, of which `support` has a part of each kind.
ROLES = [
    "",
    *(role if role in (Role.SUPPORT, Role.ADMIN) else pytest.param(role, marks=pytest.mark.long) for role in Role),
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
    for page, arguments, method, _permission in PAGES:
        response = ask(client, page, arguments, method)
        assert response.status_code == 302, page
        assert response["Location"].startswith(reverse("login")), page


@pytest.mark.parametrize("role", ROLES)
def test_a_role_without_the_right_is_told_which_one_it_lacks(role, browser_of):
    client = browser_of(role)
    for page, arguments, method, permission in PAGES:
        if role in ROLES_BY_PERMISSION[permission]:
            continue
        response = ask(client, page, arguments, method)
        assert response.status_code == 403, page
        assert str(permission) in response.content.decode(), page
        entry = AuditEntry.objects.first()
        assert (entry.who, entry.action, entry.outcome) == (role or "nobody", permission.name.lower(), "denied"), page


@pytest.mark.parametrize("role", ROLES[1:])
def test_a_role_with_the_right_is_let_through(role, browser_of, console_without_store, monkeypatch):
    monkeypatch.setattr("console.metrics.views.overview.enqueue", lambda task: None)
    client = browser_of(role)
    client.raise_request_exception = False  # without a broker a page has nothing to show
    for page, arguments, method, permission in PAGES:
        if role in ROLES_BY_PERMISSION[permission]:
            assert ask(client, page, arguments, method).status_code != 403, page
    assert not AuditEntry.objects.filter(outcome="denied").exists()


def test_a_right_elsewhere_is_none_here(browser_of):
    client = browser_of("operator", "elsewhere.>")
    about_one = [row for row in PAGES if "name" in row[1]]
    for page, arguments, method, _permission in about_one:
        assert ask(client, page, arguments, method).status_code == 403, page
    assert list(AuditEntry.objects.values_list("outcome", flat=True)) == ["denied"] * len(about_one)


@pytest.mark.parametrize("role", ["", *Role])
def test_a_socket_lets_each_role_watch_what_the_table_says(role, db):
    from console.access.permissions import has_permission

    user = make_user(role)
    assert {name for name, permission in PERMISSIONS.items() if has_permission(user, permission)} == {
        name for name, permission in TOPICS.items() if role in ROLES_BY_PERMISSION[permission]
    }


def call(client: Client, method: str, path: str, body: dict | None):
    return getattr(client, method)(f"/api/v1{path}", body, content_type="application/json")


def test_the_table_has_every_operation():
    assert {id: permission for id, *_, permission in OPERATIONS} == OPERATION_PERMISSIONS


def test_who_shows_nothing_gets_a_problem_and_no_login_page(db):
    client = Client()
    for id, method, path, body, _permission in OPERATIONS:
        response = call(client, method, path, body)
        assert (response.status_code, response["Content-Type"]) == (401, "application/problem+json"), id


@pytest.mark.parametrize("role", ROLES)
def test_an_operation_is_for_the_roles_with_the_right(role, browser_of, console_without_store, monkeypatch):
    monkeypatch.setattr(auth, "LIMIT", RateLimit(per_second=1000, burst=1000))
    client = browser_of(role)
    for id, method, path, body, permission in OPERATIONS:
        response = call(client, method, path, body)
        if role in ROLES_BY_PERMISSION[permission]:
            assert response.status_code not in (401, 403, 429), id
            continue
        assert (response.status_code, response["Content-Type"]) == (403, "application/problem+json"), id
        assert str(permission) in response.json()["detail"], id
        entry = AuditEntry.objects.first()
        assert (entry.who, entry.via, entry.outcome) == (role or "nobody", "api", "denied"), id


def test_without_the_right_nobody_is_told_what_else_is_wrong(browser_of):
    client = browser_of("")
    for id, method, path, body, _permission in OPERATIONS:
        if body is not None:
            assert call(client, method, path, {"nonsense": []}).status_code == 403, id


def test_whatever_a_page_changes_a_program_can_change_too():
    from console.urls import urlpatterns

    own = {pattern.name: pattern.callback for pattern in urlpatterns if hasattr(pattern, "name")}
    of_others = {pattern.name for pattern in allauth_urls}
    assert {name for name, view in own.items() if name not in of_others and takes_post(view)} == set(SAME)
    operations = set().union(*(same for same in SAME.values() if not isinstance(same, str)))
    assert operations <= set(OPERATION_PERMISSIONS)


def test_whatever_a_page_shows_a_program_can_read_too():
    from console.urls import urlpatterns

    names = {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")}
    assert names - set(SAME) - {pattern.name for pattern in allauth_urls} == set(SHOWN)
    assert set().union(*(same for same in SHOWN.values() if not isinstance(same, str))) <= set(OPERATION_PERMISSIONS)
