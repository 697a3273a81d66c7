"""URLs of the pages about messages, dead letters, jobs and search."""

from __future__ import annotations

from django.urls import path

from console.destinations.views import actions
from console.messages.views import browser, dead_letters, global_search, job_requests, jobs, scheduled, send
from console.messages.views import message as message_page

urlpatterns = [
    path("find", global_search.find, name="find"),
    path("find/messages", global_search.messages, name="find-messages"),
    path("queues/<name:name>/messages/<int:seq>/body", browser.body, name="message-body"),
    path("queues/<name:name>/messages/<int:seq>/edit", job_requests.edit_one, name="edit-message"),
    path("queues/<name:name>/messages/<int:seq>/", browser.message, name="message"),
    path("queues/<name:name>/messages/action", job_requests.request_job, name="message-action"),
    path("queues/<name:name>/messages/selectors", browser.save_selector, name="save-selector"),
    path(
        "queues/<name:name>/messages/selectors/<int:saved_id>/delete", browser.delete_selector, name="selector-delete"
    ),
    path("queues/<name:name>/messages/", browser.messages, name="messages"),
    path("queues/<name:name>/reset-groups", actions.reset_groups, name="reset-groups"),
    path("messages/<name:id>/outcome", message_page.resubmit_outcome, name="resubmit-outcome"),
    path("messages/<name:id>/", message_page.message, name="message-page"),
    path("dead-letters/", dead_letters.dead_letters, name="dead-letters"),
    path("jobs/", jobs.job_list, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.detail, name="job"),
    path("jobs/<uuid:job_id>/<str:action>", jobs.control, name="control-job"),
    path("send/", send.send, name="send"),
    path("send/templates/<int:template_id>/delete", send.delete_template, name="template-delete"),
    path("scheduled/", scheduled.scheduled, name="scheduled"),
    path("scheduled/cancel", scheduled.cancel, name="cancel-scheduled"),
]
