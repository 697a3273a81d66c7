"""Pages about messages: browsing them, work on them, and the search."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from console.views import dead_letters, destinations, find, jobs, message_page, messages, repair, scheduled, send

urlpatterns = [
    path("find", find.find, name="find"),
    path("find/messages", find.messages, name="find-messages"),
    path("queues/<name:name>/messages/<int:seq>/body", messages.body, name="message-body"),
    path("queues/<name:name>/messages/<int:seq>/edit", repair.edit, name="edit-message"),
    path("queues/<name:name>/messages/<int:seq>/", messages.message, name="message"),
    path("queues/<name:name>/messages/act", repair.act, name="act"),
    path("queues/<name:name>/messages/selectors", messages.save_selector, name="save-selector"),
    path("queues/<name:name>/messages/selectors/<int:saved_id>/forget", messages.forget_saved, name="forget-saved"),
    path("queues/<name:name>/messages/", messages.messages, name="messages"),
    path("queues/<name:name>/forget-groups", destinations.forget_groups, name="forget-groups"),
    path("messages/<name:id>/fate", message_page.fate, name="message-fate"),
    path("messages/<name:id>/", message_page.message, name="message-page"),
    path("dlq/", dead_letters.dead_letters, name="dlq"),
    path("dead-letters/", RedirectView.as_view(pattern_name="dlq", query_string=True), name="dead-letters"),  # typed
    path("jobs/", jobs.listing, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.detail, name="job"),
    path("jobs/<uuid:job_id>/<str:action>", jobs.control, name="control-job"),
    path("send/", send.send, name="send"),
    path("send/templates/<int:template_id>/forget", send.forget, name="forget-template"),
    path("scheduled/", scheduled.scheduled, name="scheduled"),
    path("scheduled/forget", scheduled.forget, name="forget-scheduled"),
]
