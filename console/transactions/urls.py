"""URLs of the page about prepared transactions."""

from __future__ import annotations

from django.urls import path

from console.transactions import views

urlpatterns = [
    path("transactions/", views.transactions, name="transactions"),
    path("transactions/commit", views.commit, name="commit-transaction"),
    path("transactions/rollback", views.roll_back, name="rollback-transaction"),
]
