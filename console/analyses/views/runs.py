"""Runs of analyses: the list, what is kept, two side by side, tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from analytics.results import csv_export
from console.access.permissions import Permission, permission_required
from console.analyses import comparison, run_queue, run_service
from console.analyses.exports.document import document_of_run
from console.analyses.exports.formats import FORMATS, export_response
from console.analyses.models import AnalysisRun
from console.analyses.questions import catalogue, describe_parameters, get_run_or_404, previous_run
from console.analyses.run_list import CHIPS, RunQuery
from console.ui.downloads import FileDownload, in_blocks
from console.ui.preferences import timezones

#: Rows of a table that are compared.
COMPARED = 20_000


@require_GET
@permission_required(Permission.SEE)
def runs_list(request: HttpRequest) -> HttpResponse:
    """Runs, newest first; see RunQuery for what the query string may say."""
    query, line = RunQuery.read(request.GET), run_queue.waiting_ids()
    page = query.shown(request.user)
    context = {
        "query": query,
        "page": page,
        "chips": [(label, query.url(show=name), name == query.show) for name, (label, _) in CHIPS.items()],
        "kinds": [(each.kind, each.title) for each in catalogue()],
        "rows": [(run, run_service.cells_of(run, line), describe_parameters(run.kind, run.request)) for run in page],
        "previous": query.url(page=str(page.previous_page_number())) if page.has_previous() else "",
        "next": query.url(page=str(page.next_page_number())) if page.has_next() else "",
    }
    return render(request, "analyses/runs.html", context)


@require_POST
@permission_required(Permission.ANALYSE)
def pin(request: HttpRequest, run_id: str) -> HttpResponse:
    """Pin or unpin a run; pinned runs are not deleted by retention."""
    run = get_run_or_404(request, run_id)
    run_service.pin(request, run, not run.pinned)
    return redirect("run", run_id=run.id)


@require_GET
@permission_required(Permission.SEE)
def compare(request: HttpRequest) -> HttpResponse:
    """Two finished runs of one kind: `run` twice, or `run` once for it and the one before."""
    asked = request.GET.getlist("run")
    found = sorted((_run(request, each) for each in dict.fromkeys(asked[:2])), key=lambda run: run.created)
    if len(asked) == 1 and (former := previous_run(found[0], request.user)):
        found.insert(0, former)
    if trouble := _trouble(found, len(asked)):
        messages.error(request, trouble)
        return redirect("runs")
    both = ((run, run_service.result_of(run)) for run in found)
    old, new = sorted(both, key=lambda each: each[1]["window"]["until_us"])
    context = {
        "old": old, "new": new, "words": [describe_parameters(run.kind, run.request) for run, _ in (old, new)],
        "windows": [run_service.window_of(each[1]) for each in (old, new)],
        "comparisons": list(_comparisons(old, new)),
    }  # fmt: skip
    return render(request, "analyses/comparison.html", context)


def _run(request: HttpRequest, run_id: str) -> AnalysisRun:
    try:
        return get_run_or_404(request, str(UUID(run_id)))
    except ValueError:
        raise Http404(f"Run {run_id[:40]!r} not found.") from None


def _trouble(found: list[AnalysisRun], asked: int) -> str:
    if len(found) != 2:
        return "No previous run to compare with." if asked == 1 else "Choose two runs to compare."
    if found[0].kind != found[1].kind:
        return (
            f"“{found[0].title}” and “{found[1].title}” are different analyses. Choose two runs of the same analysis."
        )
    lost = [run for run in found if run.state != AnalysisRun.State.DONE or run_service.result_of(run) is None]
    return f"{lost[0]} has no result to compare." if lost else ""


def _comparisons(old: tuple[AnalysisRun, dict], new: tuple[AnalysisRun, dict]) -> Any:
    """Tables that both results have."""
    tables = {table["file"]: table for table in old[1]["tables"] if "file" in table}
    for table in new[1]["tables"]:
        columns, before = comparison.comparable_columns(table), tables.get(table.get("file"))
        if columns is None or before is None or before["columns"] != table["columns"]:
            continue
        names = [column["name"] for part in columns for column in part]
        sides = [csv_export.rows(_file(each[0], table["file"]), names, COMPARED) for each in (old, new)]
        yield comparison.compare(table, *sides)


def _file(run: AnalysisRun, name: str) -> Path:
    path = settings.SLUICE.results / str(run.id) / Path(name).name
    if not path.is_file():
        raise Http404(f"{name} was deleted.")
    return path


@require_GET
@permission_required(Permission.SEE)
def export(request: HttpRequest, run_id: str, format: str) -> HttpResponse:
    """Return a result as one file: HTML, PDF or PNG, with times in the reader's time zone."""
    run = get_run_or_404(request, run_id)
    result = run_service.result_of(run)
    if format not in FORMATS or result is None:
        raise Http404(f"Export {format} not found.")
    zone = timezones.current_zone_name()
    return export_response(format, lambda max_rows: document_of_run(run, result, zone, max_rows))


@require_GET
@permission_required(Permission.SEE)
def download(request: HttpRequest, run_id: str, table: str, format: str) -> HttpResponse:
    """Return a table of a result in full."""
    run = get_run_or_404(request, run_id)
    result = run_service.result_of(run)
    stored = f"{table}.parquet"
    if (
        format not in ("csv", "parquet")
        or result is None
        or stored not in {each.get("file") for each in result["tables"]}
    ):
        raise Http404(f"Table {table}.{format} not found.")
    path, name = _file(run, stored), f"{run.kind}-{run.created:%Y%m%dT%H%M}-{table}.{format}"
    if format == "parquet":
        return FileDownload(
            path.open("rb"), as_attachment=True, filename=name, content_type="application/vnd.apache.parquet"
        )
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    content = in_blocks(csv_export.csv_lines(path))
    return StreamingHttpResponse(content, content_type="text/csv; charset=utf-8", headers=headers)
