"""Map the URLs of the monitoring endpoints; no slash is added and nothing redirects."""

from __future__ import annotations

from django.urls import path, re_path

from console.exporters import probes
from console.exporters.server import views

urlpatterns = [
    path("admin/xml/queues.jsp", views.queues_jsp, name="queues-jsp"),
    path("admin/xml/topics.jsp", views.topics_jsp, name="topics-jsp"),
    path("admin/xml/subscribers.jsp", views.subscribers_jsp, name="subscribers-jsp"),
    re_path(r"^api/jolokia(?:/(?P<path>.*))?$", views.jolokia_agent, name="jolokia"),
    path("metrics", views.metrics, name="metrics"),
    path("metrics/v2", views.open_metrics, name="open-metrics"),
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
]
