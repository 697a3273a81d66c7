"""Map URLs to the pages of backups."""

from __future__ import annotations

from django.urls import path

from console.backups import views

urlpatterns = [
    path("backups/", views.backups, name="backups"),
    path("backups/start", views.start, name="start-backup"),
    path("backups/schedule", views.edit_schedule, name="backup-schedule"),
    path("backups/<int:backup_id>/file", views.download, name="download-backup"),
    path("backups/<int:backup_id>/delete", views.delete, name="delete-backup"),
]
