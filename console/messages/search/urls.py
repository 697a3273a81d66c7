"""Pages of searches for messages."""

from __future__ import annotations

from django.urls import path

from console.messages.search import views

urlpatterns = [
    path("find/searches", views.start, name="start-search"),
    path("find/searches/<uuid:search_id>/", views.detail, name="search"),
    path("find/searches/<uuid:search_id>/cancel", views.cancel, name="cancel-search"),
]
