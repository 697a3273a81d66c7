"""Serve exports of results in the API."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from ninja import Router

from console.access.roles import Permission
from console.analyses import run_service
from console.analyses.exports.document import document_of_run
from console.analyses.exports.formats import FILES, ExportFormatName, export_response
from console.analyses.models import AnalysisRun
from console.analyses.questions import get_run_or_404
from console.api.common.operations import operation
from console.ui.preferences import timezones

router = Router(tags=["analyses"])


@operation(router, "GET", "/runs/{uuid:run_id}/export", Permission.SEE, **FILES)
def export_run(request: HttpRequest, run_id: UUID, format: ExportFormatName, zone: str = "UTC") -> Any:
    """Export the result of a run as one file, with times in a time zone."""
    run = get_run_or_404(request, str(run_id))
    result = run_service.result_of(run) if run.state == AnalysisRun.State.DONE else None
    if result is None:
        raise Http404(f"Run {run_id} has no result (state: {run.state}).")
    timezones.get_zone(zone)
    return export_response(format, lambda max_rows: document_of_run(run, result, zone, max_rows))
