"""Map URLs to the pages of the console."""

from __future__ import annotations

from allauth.account import views as allauth_account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.socialaccount import views as socialaccount
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from console.access.views import masking
from console.accounts import oidc
from console.accounts.views import account, api_tokens
from console.accounts.views import effective_rights as effective
from console.accounts.views import users as people
from console.alerts import views as alerts
from console.analyses.reports import views as reports
from console.analyses.sql import views as sql
from console.analyses.views import analyses, runs, tables
from console.api.composition import urls as api_urls
from console.audit.search import views as audit
from console.backups import urls as backups
from console.checks import views as checks
from console.destinations.views import actions, clients, detail, lists, subscription_messages
from console.exporters import probes
from console.messages.search import urls as message_search
from console.messages.views import urls as repair
from console.metrics.views import charts, depths, overview
from console.objectives import views as objectives
from console.routing.views import urls as routing
from console.topology import shard_views
from console.topology import views as topology
from console.transactions import urls as transactions
from console.ui.views import command_palette, preferences, saved_items

#: What allauth serves, under the names by which it finds its own pages. The specific paths come first.
allauth_urls = [
    path("login/", account.login, name="account_login"),
    path("login/code/", mfa.authenticate, name="mfa_authenticate"),
    path("login/cancelled/", socialaccount.login_cancelled, name="socialaccount_login_cancelled"),
    path("login/with/<str:provider_id>/", oidc.login, name="openid_connect_login"),
    path("login/with/<str:provider_id>/callback/", oidc.callback, name="openid_connect_callback"),
    path("logout/", LogoutView.as_view(), name="account_logout"),
    path("account/confirm/", allauth_account.reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("account/", account.account, name="mfa_index"),
    path("account/second-factor/", totp.activate_totp, name="mfa_activate_totp"),
    path("account/second-factor/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new/", recovery_codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("account/recovery-codes/file", recovery_codes.download_recovery_codes, name="mfa_download_recovery_codes"),
]

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("depths", depths.depths, name="depths"),
    path("demo", overview.start_demo, name="demo"),
    *repair.urlpatterns,
    *message_search.urlpatterns,
    *transactions.urlpatterns,
    path("chart", charts.chart, name="chart"),
    path("star", saved_items.toggle_favourite, name="star"),
    path("views/<str:page>/save", saved_items.save_view, name="save-view"),
    path("views/<int:view_id>/forget", saved_items.delete_view, name="forget-view"),
    path("queues/", lists.queues, name="queues"),
    path("queues/bulk", lists.bulk, {"kind": "queue"}, name="queues-bulk"),
    path("queues/<name:name>/chart", charts.destination_chart, {"kind": "queue"}, name="queue-chart"),
    path("queues/new", actions.create, {"kind": "queue"}, name="new-queue"),
    path("queues/<name:name>/purge", actions.purge, name="purge"),
    path("queues/<name:name>/pause", actions.pause, {"paused": True}, name="pause-queue"),
    path("queues/<name:name>/resume", actions.pause, {"paused": False}, name="resume-queue"),
    path("queues/<name:name>/delete-selector", actions.delete_selector, name="delete-selector"),
    path("queues/<name:name>/delete", actions.delete, {"kind": "queue"}, name="delete-queue"),
    path("queues/<name:name>/", detail.detail, {"kind": "queue"}, name="queue"),
    path("topics/", lists.topics, name="topics"),
    path("topics/bulk", lists.bulk, {"kind": "topic"}, name="topics-bulk"),
    path("topics/<name:name>/chart", charts.destination_chart, {"kind": "topic"}, name="topic-chart"),
    path("topics/new", actions.create, {"kind": "topic"}, name="new-topic"),
    path("topics/<name:name>/delete", actions.delete, {"kind": "topic"}, name="delete-topic"),
    path("topics/<name:name>/", detail.detail, {"kind": "topic"}, name="topic"),
    *routing.urlpatterns,
    path("topology/", topology.topology, name="topology"),
    path("topology/nodes/rebalance", topology.rebalance, name="rebalance-nodes"),
    path("topology/nodes/<name:node>/<str:action>", topology.drain, name="drain-node"),
    path("topology/shards/", shard_views.shards, name="shards"),
    path("topology/shards/add", shard_views.add, name="add-shard"),
    path("topology/shards/move", shard_views.move, name="move-family"),
    path("topology/shards/<int:number>/", shard_views.shard, name="shard"),
    path("topology/shards/<int:number>/<str:action>", shard_views.change, name="change-shard"),
    path("topology/connectors/new", topology.edit, name="new-connector"),
    path("topology/connectors/<name:connector>/edit", topology.edit, name="edit-connector"),
    path("topology/connectors/<name:connector>/remove", topology.remove, name="remove-connector"),
    path("topology/connectors/<name:connector>/<str:action>", topology.switch, name="switch-connector"),
    path("topology/connectors/<name:connector>/", topology.connector, name="connector"),
    path("connections/", clients.connections, name="connections"),
    path("connections/<str:connection_id>/", clients.connection, name="connection"),
    path("connections/<str:connection_id>/close", clients.close_connection, name="close-connection"),
    path("subscriptions/", clients.subscriptions, name="subscribers"),
    path(
        "subscriptions/<name:log>/messages/",
        subscription_messages.subscription_messages,
        name="subscription-messages",
    ),
    path("subscriptions/<name:log>/delete", clients.delete_subscription, name="delete-subscription"),
    path("checks/", checks.checks, name="checks"),
    path("checks/run", checks.run_checks, name="run-checks"),
    path("objectives/", objectives.objectives, name="objectives"),
    path("objectives/new", objectives.edit, name="new-objective"),
    path("objectives/<int:objective_id>/", objectives.edit, name="edit-objective"),
    path("objectives/<int:objective_id>/delete", objectives.delete, name="delete-objective"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/new", alerts.edit, name="new-alert"),
    path("alerts/test", alerts.test_rule, name="test-alert"),
    path("alerts/rules/<int:rule_id>/", alerts.edit, name="edit-alert"),
    path("alerts/rules/<int:rule_id>/send-test", alerts.send_test, name="send-test-alert"),
    path("alerts/rules/<int:rule_id>/change", alerts.change, name="change-alert"),
    path("alerts/<int:firing_id>/", alerts.firing, name="firing"),
    path("analytics/", analyses.analyses, name="analyses"),
    path("analytics/ask/<str:kind>/", analyses.ask, name="ask-analysis"),
    path("analytics/start", analyses.start, name="start-run"),
    path("analytics/tables/", tables.tables, name="tables"),
    path("analytics/tables/rebuild", tables.rebuild, name="rebuild-tables"),
    path("analytics/runs/", runs.runs_list, name="runs"),
    path("analytics/runs/compare", runs.compare, name="compare-runs"),
    path("analytics/runs/<uuid:run_id>/", analyses.run, name="run"),
    path("analytics/runs/<uuid:run_id>/pin", runs.pin, name="pin-run"),
    path("analytics/runs/<uuid:run_id>/<str:table>.<str:format>", runs.download, name="download-table"),
    path("analytics/runs/<uuid:run_id>/export/<str:format>", runs.export, name="export-run"),
    path("analytics/runs/<uuid:run_id>/cancel", analyses.cancel, name="cancel-run"),
    path("analytics/sql/", sql.sql, name="sql"),
    path("analytics/sql/run", sql.run, name="run-sql"),
    path("analytics/sql/save", sql.save, name="save-query"),
    path("analytics/sql/queries/<int:query_id>/delete", sql.delete, name="delete-query"),
    path("reports/", reports.reports, name="reports"),
    path("reports/new", reports.edit, name="new-report"),
    path("reports/timing", reports.timing, name="report-timing"),
    path("reports/<int:report_id>/", reports.report, name="report"),
    path("reports/<int:report_id>/edit", reports.edit, name="edit-report"),
    path("reports/<int:report_id>/editions/<int:edition_id>/", reports.edition, name="edition"),
    path(
        "reports/<int:report_id>/editions/<int:edition_id>/export/<str:format>", reports.export, name="export-edition"
    ),
    path("reports/<int:report_id>/editions/<int:edition_id>/mail", reports.preview, name="mail-preview"),
    path("reports/<int:report_id>/<str:action>", reports.change, name="change-report"),
    *backups.urlpatterns,
    path("audit/", audit.audit, name="audit"),
    path("audit/export.<str:format>", audit.export, name="audit-export"),
    path("palette", command_palette.palette, name="palette"),
    path("admin/", people.users, name="users"),
    path("admin/users/new", people.new_user, name="new-user"),
    path("admin/users/<int:user_id>/", people.user, name="user"),
    path("admin/users/<int:user_id>/<str:action>", people.change_user, name="change-user"),
    path("admin/groups/", people.groups, name="groups"),
    path("admin/groups/<int:group_id>/", people.group, name="group"),
    path("admin/groups/<int:group_id>/delete", people.delete_group, name="delete-group"),
    path("admin/roles/", people.roles, name="roles"),
    path("admin/roles/<int:assignment_id>/take", people.remove_role, name="role-revoke"),
    path("admin/user/<int:holder_id>/give", people.assign_role, {"holder": "user"}, name="role-grant"),
    path("admin/group/<int:holder_id>/give", people.assign_role, {"holder": "group"}, name="group-role-grant"),
    path("admin/masking/", masking.masking, name="masking"),
    path("admin/masking/new", masking.edit, name="new-masking-rule"),
    path("admin/masking/<int:rule_id>/", masking.edit, name="masking-rule"),
    path("admin/masking/<int:rule_id>/<str:action>", masking.change, name="change-masking-rule"),
    path("admin/effective/", effective.effective_rights, name="effective"),
    path("admin/effective/see", effective.begin_impersonation, name="impersonate"),
    path("admin/effective/stop", effective.end_impersonation, name="impersonate-end"),
    path("invitation/<str:uidb64>/<str:token>/", account.invitation, name="invitation"),
    path("tokens/", api_tokens.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", api_tokens.revoke, name="revoke-token"),
    path("theme", preferences.theme, name="theme"),
    path("keys", preferences.shortcut_keys, name="keys"),
    path("zone", preferences.zone, name="zone"),
    path("bell/seen", preferences.notifications_seen, name="bell-seen"),
    path("login/", account.login, name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("api/", api_urls),
    path("account/", account.account, name="account"),
    path("account/password/", account.change_password, name="change-password"),
    path("account/sessions/end", account.revoke_sessions, name="sessions-revoke"),
    *allauth_urls,
    path("healthz", login_not_required(probes.healthz), name="healthz"),
    path("readyz", login_not_required(probes.readyz), name="readyz"),
    path("", include("console.ui.former_urls")),
]

handler400 = "console.ui.views.error_pages.bad_request"
handler403 = "console.ui.views.error_pages.permission_denied"
handler404 = "console.ui.views.error_pages.page_not_found"
handler500 = "console.ui.views.error_pages.server_error"
