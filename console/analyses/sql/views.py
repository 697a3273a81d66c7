"""Serve the page of SQL: editor, views and functions, saved queries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from analytics.requests.catalogue import ANALYSES, SQL
from analytics.requests.parameters import SQL_WINDOW
from analytics.requests.time_ranges import LINK_FIELDS
from analytics.results.query_charts import KINDS
from brokerapp.errors import RequestRefused
from console.access.permissions import Permission, permission_required
from console.analyses import time_range_form
from console.analyses.models import AnalysisRun
from console.analyses.questions import explicit_window, get_run_or_404, link_fields
from console.analyses.sql import sql_service
from console.analyses.sql.examples import EXAMPLES
from console.analyses.sql.models import SavedQuery

#: Fields of the form, beside the boxes of whom a query is shared with.
FIELDS = ("query", "name", "description", "statement", "window", *sql_service.CHART_FIELDS)


@require_GET
@permission_required(Permission.SQL)
def sql(request: HttpRequest) -> HttpResponse:
    """Show the editor: empty, with a saved query, with an example, or with the statement of a run."""
    asked = request.GET.get("query", "")
    if asked.isdecimal():
        query = sql_service.get_query_or_404(request, int(asked))
        shown = {"query": query.pk, "name": query.name, "description": query.description, **query.parameters}
        return _page(request, shown | {"everyone": query.everyone, "roles": query.roles}, query)
    if run_id := request.GET.get("run", ""):
        asked = _run(request, run_id).request
        window = explicit_window(asked)
        ends = {} if window is None else link_fields(window)
        return _page(request, {name: str(value) for name, value in asked.items()} | ends)
    linked = {name: request.GET[name] for name in (SQL_WINDOW.name, *LINK_FIELDS) if name in request.GET}
    return _page(request, {"statement": EXAMPLES[0].statement, **EXAMPLES[0].chart, **linked})


def _run(request: HttpRequest, run_id: str) -> AnalysisRun:
    from console.ui.formatting.uuids import valid_ids

    found = valid_ids([run_id])
    return get_run_or_404(request, found[0] if found else "00000000-0000-0000-0000-000000000000")


def _page(
    request: HttpRequest, shown: Mapping[str, Any], query: SavedQuery | None = None, error: RequestRefused | None = None
) -> HttpResponse:
    context = {
        "shown": shown,
        "time_range": _time_range(request, shown),
        "custom": time_range_form.CUSTOM,
        "query": query,
        "is_own": query is not None and query.owner == request.user.get_username(),
        "queries": sql_service.visible_queries(request.user),
        "windows": SQL_WINDOW.choices,
        "charts": KINDS.items(),
        "roles": sql_service.SHARED_ROLES,
        "schema": sql_service.schema(),
        "examples": EXAMPLES,
        "error": error,
        "is_placed": bool(getattr(error, "line", 0)),
        "sees_properties": _sees_properties(request),
    }  # fmt: skip
    return render(request, "analyses/sql/editor.html", context, status=400 if error else 200)


def _time_range(request: HttpRequest, shown: Mapping[str, Any]) -> time_range_form.TimeRangeField:
    if request.method == "POST":
        return time_range_form.field_of_post(request.POST)
    return time_range_form.field_of_link(ANALYSES[SQL], shown, time.time())


def _sees_properties(request: HttpRequest) -> bool:
    return sql_service.access_of(request.user).properties is not None


def _posted(request: HttpRequest) -> dict[str, Any]:
    given: dict[str, Any] = {name: request.POST.get(name, "") for name in FIELDS}
    return given | {"everyone": "everyone" in request.POST, "roles": request.POST.getlist("roles")}


def _posted_query(request: HttpRequest) -> SavedQuery | None:
    asked = request.POST.get("query", "")
    return sql_service.get_query_or_404(request, int(asked)) if asked.isdecimal() else None


@require_POST
@permission_required(Permission.SQL)
def run(request: HttpRequest) -> HttpResponse:
    """Run the statement of the editor and go to its run."""
    given, query = _posted(request), _posted_query(request)
    title = query.name if query is not None and query.statement == given["statement"].strip() else ""
    try:
        found = sql_service.start(request, given, title, time_range_form.posted_window(request.POST))
    except RequestRefused as error:
        return _page(request, given, query, error)
    return redirect("run", run_id=found.id)


@require_POST
@permission_required(Permission.SQL)
def save(request: HttpRequest) -> HttpResponse:
    """Save the statement of the editor: as one's own query that is open, or else as a new one."""
    given, query = _posted(request), _posted_query(request)
    is_own = query is not None and query.owner == request.user.get_username()
    existing = query if is_own and "copy" not in request.POST else None
    try:
        saved = sql_service.save_query(request, existing, given)
    except RequestRefused as error:
        return _page(request, given, query, error)
    messages.success(request, f"Query “{saved.name}” saved.")
    return redirect(f"{reverse('sql')}?query={saved.pk}")


@require_POST
@permission_required(Permission.SQL)
def delete(request: HttpRequest, query_id: int) -> HttpResponse:
    """Delete one's own saved query."""
    query = sql_service.get_query_or_404(request, query_id)
    sql_service.delete_query(request, query)
    messages.success(request, f"Query “{query.name}” deleted.")
    return redirect("sql")
