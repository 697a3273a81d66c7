"""Build what a run is sent to workers with: its request, and what is decided only then."""

from __future__ import annotations

from typing import Any

from console.analyses.models import AnalysisRun
from console.analyses.questions import is_sql, with_routing
from console.analyses.sql_access import access_at_start


def request_of(run: AnalysisRun) -> dict[str, Any]:
    """Return the request of a run as a worker takes it. Raises RequestRefused if its owner may not run it any more."""
    request = with_routing(run.request)
    if run.trial is not None:
        request["trial"] = run.trial
    if is_sql(run):
        run.access = access_at_start(run).to_json()
        run.save(update_fields=["access"])  # which decides who may read the result
        request["access"] = run.access
    return request
