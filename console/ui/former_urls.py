"""Redirect the paths of former versions, which bookmarks, mails and pages that are still open lead to.

308 keeps the method: a form of a page that was open during an update is submitted to the present path.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse

#: Former paths, and the names of the present ones.
FORMER = {
    "dlq/": "dead-letters",
    "messages/<name:id>/fate": "resubmit-outcome",
    "queues/<name:name>/forget-groups": "reset-groups",
    "queues/<name:name>/forget-selector": "delete-selector",
    "queues/<name:name>/messages/act": "message-action",
    "queues/<name:name>/messages/selectors/<int:saved_id>/forget": "selector-delete",
    "scheduled/forget": "cancel-scheduled",
    "send/templates/<int:template_id>/forget": "template-delete",
    "subscribers/": "subscribers",
    "subscribers/<name:log>/delete": "delete-subscription",
    "subscribers/<name:log>/messages/": "subscription-messages",
}


def redirect_to(request: HttpRequest, present: str, **arguments: Any) -> HttpResponse:
    """Redirect to the present path with the same arguments, query and method."""
    query = request.META.get("QUERY_STRING", "")
    url = reverse(present, kwargs=arguments) + (f"?{query}" if query else "")
    return redirect(url, permanent=True, preserve_request=True)


urlpatterns = [path(former, redirect_to, {"present": present}) for former, present in FORMER.items()]
