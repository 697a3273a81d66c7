"""Addresses of the routing pages."""

from __future__ import annotations

from django.urls import path

from console.routing.views import drafts, editor, history, map, what_if, xml_files
from console.routing.views import findings as routing_findings
from console.routing.views import policies as routing_policies
from console.routing.views import preview as routing_preview

urlpatterns = [
    path("routing/", map.routing, name="routing"),
    path("routing/new", editor.choose, name="choose-definition"),
    path("routing/new/<str:kind>", editor.edit, name="new-definition"),
    path("routing/edit", editor.edit, name="edit-definition"),
    path("routing/delete", editor.delete, name="delete-definition"),
    path("routing/check/<str:kind>", editor.check, name="check-definition"),
    path("routing/policies/", routing_policies.policies, name="routing-policies"),
    path("routing/changes/", history.changes, name="routing-changes"),
    path("routing/changes/<int:number>/", history.version, name="routing-version"),
    path("routing/changes/<int:number>/revert", history.revert, name="revert-routing"),
    path("routing/undo", history.undo, name="undo-routing"),
    path("routing/drafts/<int:draft_id>/", drafts.draft, name="draft"),
    path("routing/drafts/<int:draft_id>/trials/", what_if.show_run, name="draft-trials"),
    path("routing/drafts/<int:draft_id>/trials/start", what_if.start_run, name="start-trial"),
    path("routing/drafts/<int:draft_id>/trials/<uuid:run_id>/", what_if.show_run, name="draft-trial"),
    path("routing/drafts/<int:draft_id>/trials/<uuid:run_id>/cancel", what_if.cancel_run, name="cancel-trial"),
    path("routing/drafts/<int:draft_id>/<str:what>", drafts.step, name="draft-step"),
    path("routing/preview/", routing_preview.preview, name="route-preview"),
    path("routing/tester/", routing_preview.tester, name="selector-tester"),
    path("routing/findings/", routing_findings.findings, name="routing-findings"),
    path("routing/import/", xml_files.import_file, name="routing-import"),
    path("routing/export", xml_files.export_file, name="routing-export"),
]
