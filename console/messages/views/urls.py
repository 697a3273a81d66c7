"""Pages about messages: browsing them, work on them, and the search."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from console.destinations.views import actions
from console.messages.views import browser, dead_letters, global_search, job_requests, jobs, scheduled, send
from console.messages.views import message as message_page

urlpatterns = [
    path("find", global_search.find, name="find"),
    path("find/messages", global_search.messages, name="find-messages"),
    path("queues/<name:name>/messages/<int:seq>/body", browser.body, name="message-body"),
    path("queues/<name:name>/messages/<int:seq>/edit", job_requests.edit, name="edit-message"),
    path("queues/<name:name>/messages/<int:seq>/", browser.message, name="message"),
    path("queues/<name:name>/messages/act", job_requests.act, name="act"),
    path("queues/<name:name>/messages/selectors", browser.save_selector, name="save-selector"),
    path("queues/<name:name>/messages/selectors/<int:saved_id>/forget", browser.forget_saved, name="forget-saved"),
    path("queues/<name:name>/messages/", browser.messages, name="messages"),
    path("queues/<name:name>/forget-groups", actions.forget_groups, name="forget-groups"),
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
