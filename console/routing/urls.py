"""The pages about routing."""

from __future__ import annotations

from django.urls import path

from console.views import (
    routing,
    routing_drafts,
    routing_editor,
    routing_files,
    routing_findings,
    routing_history,
    routing_policies,
    routing_preview,
    routing_trials,
)

urlpatterns = [
    path("routing/", routing.routing, name="routing"),
    path("routing/new", routing_editor.choose, name="choose-definition"),
    path("routing/new/<str:kind>", routing_editor.edit, name="new-definition"),
    path("routing/edit", routing_editor.edit, name="edit-definition"),
    path("routing/delete", routing_editor.delete, name="delete-definition"),
    path("routing/check/<str:kind>", routing_editor.check, name="check-definition"),
    path("routing/policies/", routing_policies.policies, name="routing-policies"),
    path("routing/changes/", routing_history.changes, name="routing-changes"),
    path("routing/changes/<int:number>/", routing_history.version, name="routing-version"),
    path("routing/changes/<int:number>/revert", routing_history.revert, name="revert-routing"),
    path("routing/undo", routing_history.undo, name="undo-routing"),
    path("routing/drafts/<int:draft_id>/", routing_drafts.draft, name="draft"),
    path("routing/drafts/<int:draft_id>/trials/", routing_trials.trial, name="draft-trials"),
    path("routing/drafts/<int:draft_id>/trials/start", routing_trials.start, name="start-trial"),
    path("routing/drafts/<int:draft_id>/trials/<uuid:run_id>/", routing_trials.trial, name="draft-trial"),
    path("routing/drafts/<int:draft_id>/trials/<uuid:run_id>/cancel", routing_trials.cancel, name="cancel-trial"),
    path("routing/drafts/<int:draft_id>/<str:what>", routing_drafts.step, name="draft-step"),
    path("routing/preview/", routing_preview.preview, name="route-preview"),
    path("routing/tester/", routing_preview.tester, name="selector-tester"),
    path("routing/findings/", routing_findings.findings, name="routing-findings"),
    path("routing/import/", routing_files.import_file, name="routing-import"),
    path("routing/export", routing_files.export_file, name="routing-export"),
]
