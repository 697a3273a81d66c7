"""List the pages of the console with the API operations that do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

#: Why a page's change is none for programs.
OF_A_BROWSER = "how one person's own browser shows things"
OF_A_PERSON = "the account of who is logged in: a token is no person"

#: Address that takes a POST, and the operations that do the same, or why there is none.
SAME: dict[str, set[str] | str] = {
    "demo": "a show for a first look, made with a page to look at",
    "star": OF_A_BROWSER,
    "save-view": OF_A_BROWSER,
    "forget-view": OF_A_BROWSER,
    "save-selector": OF_A_BROWSER,
    "selector-delete": OF_A_BROWSER,
    "template-delete": OF_A_BROWSER,
    "theme": OF_A_BROWSER,
    "bell-seen": OF_A_BROWSER,
    "keys": OF_A_BROWSER,
    "zone": OF_A_BROWSER,
    "impersonate": OF_A_BROWSER,
    "impersonate-end": OF_A_BROWSER,
    "queues-bulk": {"purge_queue", "pause_queue", "delete_destination"},
    "topics-bulk": {"delete_destination"},
    "new-queue": {"create_destination"},
    "new-topic": {"create_destination"},
    "purge": {"purge_queue"},
    "pause-queue": {"pause_queue"},
    "resume-queue": {"pause_queue"},
    "delete-selector": {"forget_selector"},
    "reset-groups": {"forget_groups"},
    "delete-queue": {"delete_destination"},
    "delete-topic": {"delete_destination"},
    "message-action": {"start_job", "get_radius", "preview_edit"},
    "edit-message": {"edit_message"},
    "send": {"send_messages"},
    "cancel-scheduled": {"forget_scheduled"},
    "commit-transaction": {"commit_transaction"},
    "rollback-transaction": {"roll_back_transaction"},
    "start-search": {"start_search"},
    "cancel-search": {"cancel_search"},
    "control-job": {"control_job", "set_job_rate"},
    "new-definition": {"create_draft", "change_draft", "apply_definitions"},
    "edit-definition": {"create_draft", "change_draft", "apply_definitions"},
    "delete-definition": {"create_draft", "change_draft", "apply_definitions"},
    "check-definition": {"check_definitions"},
    "revert-routing": {"revert_definitions"},
    "undo-routing": {"revert_definitions"},
    "draft-step": {"step_draft"},
    "route-preview": {"preview_route"},
    "selector-tester": {"test_selector"},
    "start-trial": {"start_trial"},
    "cancel-trial": {"cancel_run"},
    "routing-import": {"import_definitions_file"},
    "new-connector": {"create_connector"},
    "edit-connector": {"change_connector"},
    "remove-connector": {"delete_connector"},
    "switch-connector": {"switch_connector"},
    "drain-node": {"drain_node"},
    "rebalance-nodes": {"rebalance_nodes"},
    "close-connection": {"close_connection"},
    "delete-subscription": {"delete_subscription"},
    "new-objective": {"create_objective"},
    "edit-objective": {"change_objective"},
    "delete-objective": {"delete_objective"},
    "new-alert": {"create_alert_rule"},
    "edit-alert": {"change_alert_rule"},
    "change-alert": {"step_alert_rule", "delete_alert_rule"},
    "test-alert": {"test_alert_rule"},
    "send-test-alert": {"send_test_of_alert_rule"},
    "start-run": {"start_run"},
    "cancel-run": {"cancel_run"},
    "rebuild-tables": {"rebuild_tables"},
    "pin-run": {"pin_run"},
    "new-report": {"create_report"},
    "edit-report": {"change_report"},
    "run-sql": {"run_sql", "run_sql_query"},
    "save-query": {"create_sql_query", "change_sql_query"},
    "delete-query": {"delete_sql_query"},
    "change-report": {"change_report", "run_report", "delete_report"},
    "new-user": {"create_user", "assign_role", "reset_password"},
    "change-user": {"switch_user", "unlock_user", "reset_second_factor", "reset_password", "set_membership"},
    "groups": {"create_group"},
    "delete-group": {"delete_group"},
    "role-revoke": {"withdraw_role", "withdraw_group_role"},
    "role-grant": {"assign_role"},
    "group-role-grant": {"assign_group_role"},
    "new-masking-rule": {"create_masking_rule"},
    "masking-rule": {"change_masking_rule"},
    "change-masking-rule": {"step_masking_rule", "delete_masking_rule"},
    "tokens": {"create_token"},
    "revoke-token": {"revoke_token"},
    "sessions-revoke": OF_A_PERSON,
}


#: Why a page is not read by programs.
AS_WORDS = "the same in other words, which the operations of what it is about tell as data"
OF_PROGRAMS = "made for programs"

#: Address that only shows something, and the operations that tell the same, or why there is none.
SHOWN: dict[str, set[str] | str] = {
    "overview": {"get_overview", "list_nodes", "list_firings"},
    "chart": {"get_history"},
    "queues": {"list_destinations"},
    "topics": {"list_destinations"},
    "queue": {"get_destination", "list_selectors", "list_groups", "list_connections", "preview_route"},
    "topic": {"get_destination", "list_connections", "preview_route"},
    "queue-chart": {"get_history"},
    "topic-chart": {"get_history"},
    "depths": {"get_depths"},
    "palette": OF_A_BROWSER,
    "find": {"list_destinations"},
    "find-messages": {"search_messages"},
    "search": {"get_search"},
    "messages": {"browse_messages"},
    "message": {"get_message"},
    "message-body": {"get_message"},
    "message-page": {"get_journey"},
    "resubmit-outcome": {"get_journey"},
    "dead-letters": {"list_dead_letters"},
    "jobs": {"list_jobs"},
    "job": {"get_job", "list_outcomes"},
    "scheduled": {"list_scheduled"},
    "transactions": {"list_transactions"},
    "subscribers": {"list_subscriptions", "list_connections"},
    "subscription-messages": {"browse_subscription"},
    "connections": {"list_connections"},
    "connection": {"list_connections"},
    "routing": {"get_definitions"},
    "routing-policies": {"get_definitions"},
    "routing-findings": {"list_findings"},
    "routing-changes": {"list_versions", "list_drafts"},
    "routing-version": {"get_definitions"},
    "routing-export": {"export_definitions"},
    "choose-definition": AS_WORDS,
    "draft": {"get_draft", "diff_draft", "list_remarks"},
    "draft-trials": {"list_runs"},
    "draft-trial": {"get_run", "get_result"},
    "topology": {"list_networks", "get_cluster"},
    "connector": {"list_networks", "list_demand", "explain_bridge"},
    "analyses": {"list_analyses"},
    "ask-analysis": {"list_analyses"},
    "runs": {"list_runs"},
    "tables": {"get_tables"},
    "run": {"get_run", "get_result"},
    "compare-runs": {"get_result"},
    "download-table": {"get_result"},
    "sql": {"get_sql_schema", "list_sql_queries", "get_sql_query"},
    "export-run": {"export_run"},
    "reports": {"list_reports"},
    "report": {"get_report", "list_editions"},
    "report-timing": AS_WORDS,
    "edition": {"list_editions", "get_result"},
    "export-edition": {"export_edition"},
    "mail-preview": AS_WORDS,
    "objectives": {"list_objectives", "get_objective"},
    "alerts": {"list_alert_rules", "list_firings"},
    "firing": {"list_firings", "list_deliveries"},
    "audit": {"list_entries"},
    "audit-export": {"list_entries"},
    "users": {"list_users"},
    "user": {"list_users"},
    "group": {"list_user_groups"},
    "roles": {"get_effective_rights"},
    "effective": {"get_effective_rights"},
    "masking": {"list_masking_rules"},
    "account": OF_A_PERSON,
    "login": OF_A_PERSON,
    "logout": OF_A_PERSON,
    "change-password": OF_A_PERSON,
    "invitation": OF_A_PERSON,
    "healthz": OF_PROGRAMS,
    "readyz": OF_PROGRAMS,
}


def layers(view: Callable) -> Iterator[Callable]:
    """A view and what it is wrapped around."""
    while view is not None:
        yield view
        view = getattr(view, "__wrapped__", None)


def takes_post(view: Callable) -> bool:
    """Whether a decorator of the view lets a POST through."""
    for each in layers(view):
        names = each.__code__.co_freevars if hasattr(each, "__code__") else ()
        if "request_method_list" in names:
            return "POST" in each.__closure__[names.index("request_method_list")].cell_contents
    return False
