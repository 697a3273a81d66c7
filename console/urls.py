"""Every page of the console."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpResponse
from django.urls import path

from console.views import (
    analyses,
    audit,
    connections,
    dead_letters,
    destinations,
    find,
    jobs,
    message_page,
    messages,
    overview,
    preferences,
    repair,
    routing,
    routing_files,
    scheduled,
    schedules,
    send,
)

healthz = login_not_required(lambda request: HttpResponse("ok", content_type="text/plain"))

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("demo", overview.start_demo, name="demo"),
    path("find", find.find, name="find"),
    path("find/messages", find.messages, name="find-messages"),
    path("queues/", destinations.queues, name="queues"),
    path("queues/new", destinations.create, {"kind": "queue"}, name="new-queue"),
    path("queues/<path:name>/messages/<int:seq>/", messages.message, name="message"),
    path("queues/<path:name>/messages/<int:seq>/body", messages.body, name="message-body"),
    path("queues/<path:name>/messages/<int:seq>/edit", repair.edit, name="edit-message"),
    path("queues/<path:name>/messages/act", repair.act, name="act"),
    path("queues/<path:name>/messages/selectors", messages.save_selector, name="save-selector"),
    path("queues/<path:name>/messages/selectors/<int:saved_id>/forget", messages.forget_saved, name="forget-saved"),
    path("queues/<path:name>/messages/", messages.messages, name="messages"),
    path("queues/<path:name>/forget-groups", destinations.forget_groups, name="forget-groups"),
    path("queues/<path:name>/purge", destinations.purge, name="purge"),
    path("queues/<path:name>/pause", destinations.pause, {"paused": True}, name="pause-queue"),
    path("queues/<path:name>/resume", destinations.pause, {"paused": False}, name="resume-queue"),
    path("queues/<path:name>/forget-selector", destinations.forget_selector, name="forget-selector"),
    path("queues/<path:name>/delete", destinations.delete, {"kind": "queue"}, name="delete-queue"),
    path("queues/<path:name>/", destinations.detail, {"kind": "queue"}, name="queue"),
    path("topics/", destinations.topics, name="topics"),
    path("topics/new", destinations.create, {"kind": "topic"}, name="new-topic"),
    path("topics/<path:name>/delete", destinations.delete, {"kind": "topic"}, name="delete-topic"),
    path("topics/<path:name>/", destinations.detail, {"kind": "topic"}, name="topic"),
    path("messages/<path:id>/fate", message_page.fate, name="message-fate"),
    path("messages/<path:id>/", message_page.message, name="message-page"),
    path("dlq/", dead_letters.dead_letters, name="dlq"),
    path("jobs/", jobs.listing, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.detail, name="job"),
    path("jobs/<uuid:job_id>/<str:action>", jobs.control, name="control-job"),
    path("send/", send.send, name="send"),
    path("send/templates/<int:template_id>/forget", send.forget, name="forget-template"),
    path("scheduled/", scheduled.scheduled, name="scheduled"),
    path("scheduled/forget", scheduled.forget, name="forget-scheduled"),
    path("routing/", routing.routing, name="routing"),
    path("routing/new/<str:kind>", routing.edit, name="new-definition"),
    path("routing/edit", routing.edit, name="edit-definition"),
    path("routing/delete", routing.delete, name="delete-definition"),
    path("routing/check/<str:kind>", routing.check, name="check-definition"),
    path("routing/history/", routing.history, name="routing-history"),
    path("routing/import/", routing_files.import_file, name="routing-import"),
    path("routing/export", routing_files.export_file, name="routing-export"),
    path("connections/", connections.connections, name="connections"),
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
