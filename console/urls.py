"""Every page of the console."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpResponse
from django.urls import path

from console.views import (
    alerts,
    analyses,
    audit,
    charts,
    connections,
    destinations,
    detail,
    lists,
    messages,
    overview,
    preferences,
    routing,
    routing_files,
    schedules,
)

healthz = login_not_required(lambda request: HttpResponse("ok", content_type="text/plain"))

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("demo", overview.start_demo, name="demo"),
    path("find", destinations.find, name="find"),
    path("chart", charts.chart, name="chart"),
    path("star", lists.star, name="star"),
    path("views/<str:kind>/save", lists.save_view, name="save-view"),
    path("views/<int:view_id>/forget", lists.forget_view, name="forget-view"),
    path("queues/", lists.queues, name="queues"),
    path("queues/bulk", lists.bulk, {"kind": "queue"}, name="queues-bulk"),
    path("queues/<path:name>/chart", charts.destination_chart, {"kind": "queue"}, name="queue-chart"),
    path("queues/new", destinations.create, {"kind": "queue"}, name="new-queue"),
    path("queues/<path:name>/messages/<int:seq>/", messages.message, name="message"),
    path("queues/<path:name>/messages/", messages.messages, name="messages"),
    path("queues/<path:name>/purge", destinations.purge, name="purge"),
    path("queues/<path:name>/pause", destinations.pause, {"paused": True}, name="pause-queue"),
    path("queues/<path:name>/resume", destinations.pause, {"paused": False}, name="resume-queue"),
    path("queues/<path:name>/forget-selector", destinations.forget_selector, name="forget-selector"),
    path("queues/<path:name>/delete", destinations.delete, {"kind": "queue"}, name="delete-queue"),
    path("queues/<path:name>/", detail.detail, {"kind": "queue"}, name="queue"),
    path("topics/", lists.topics, name="topics"),
    path("topics/bulk", lists.bulk, {"kind": "topic"}, name="topics-bulk"),
    path("topics/<path:name>/chart", charts.destination_chart, {"kind": "topic"}, name="topic-chart"),
    path("topics/new", destinations.create, {"kind": "topic"}, name="new-topic"),
    path("topics/<path:name>/delete", destinations.delete, {"kind": "topic"}, name="delete-topic"),
    path("topics/<path:name>/", detail.detail, {"kind": "topic"}, name="topic"),
    path("routing/", routing.routing, name="routing"),
    path("routing/new/<str:kind>", routing.edit, name="new-definition"),
    path("routing/edit", routing.edit, name="edit-definition"),
    path("routing/delete", routing.delete, name="delete-definition"),
    path("routing/check/<str:kind>", routing.check, name="check-definition"),
    path("routing/history/", routing.history, name="routing-history"),
    path("routing/import/", routing_files.import_file, name="routing-import"),
    path("routing/export", routing_files.export_file, name="routing-export"),
    path("connections/", connections.connections, name="connections"),
    path("connections/<str:connection_id>/", connections.connection, name="connection"),
    path("connections/<str:connection_id>/close", connections.close_connection, name="close-connection"),
    path("subscribers/", connections.subscribers, name="subscribers"),
    path("subscribers/<path:log>/delete", connections.delete_subscription, name="delete-subscription"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/new", alerts.edit, name="new-alert"),
    path("alerts/test", alerts.test_rule, name="test-alert"),
    path("alerts/rules/<int:rule_id>/", alerts.edit, name="edit-alert"),
    path("alerts/rules/<int:rule_id>/change", alerts.change, name="change-alert"),
    path("alerts/<int:firing_id>/", alerts.firing, name="firing"),
    path("analytics/", analyses.analyses, name="analyses"),
    path("analytics/start", analyses.start, name="start-run"),
    path("analytics/runs/<uuid:run_id>/", analyses.run, name="run"),
    path("analytics/runs/<uuid:run_id>/cancel", analyses.cancel, name="cancel-run"),
    path("analytics/schedules/new", schedules.create, name="new-schedule"),
    path("analytics/schedules/<int:schedule_id>/<str:action>", schedules.change, name="change-schedule"),
    path("audit/", audit.audit, name="audit"),
    path("audit/export.<str:format>", audit.export, name="audit-export"),
    path("theme", preferences.theme, name="theme"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", healthz, name="healthz"),
]

handler403 = "console.views.problems.denied"
handler404 = "console.views.problems.missing"
handler500 = "console.views.problems.broken"
