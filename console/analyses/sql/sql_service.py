"""Run SQL statements, and find, save, share and delete saved ones, for pages and the API: with audit entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest

from analytics.requests.catalogue import SQL
from analytics.requests.request import TimeWindow, is_window
from brokerapp.errors import RequestRefused
from brokerapp.system import extras
from console.access.permissions import AnyUser, require, roles_of
from console.access.roles import Permission, Role
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.analyses.questions import request_for
from console.analyses.sql.models import SavedQuery
from console.analyses.sql_access import access_of
from console.audit import trail

#: Saved statements of one user: a list that a page shows whole.
MAX_QUERIES = 200
MAX_NAME, MAX_DESCRIPTION = 80, 300
#: Parameters of the chart.
CHART_FIELDS = ("chart", "x", "y", "series")
#: Roles of people that a query can be shared with: those that can have the permission.
SHARED_ROLES = (Role.ANALYST, Role.OPERATOR, Role.ADMIN)


def check_statement(text: str) -> None:
    """Raise StatementRefused unless a statement may run, RequestRefused where the parser is not installed."""
    extras.require(extras.ANALYTICS, "SQL queries need")
    from analytics.sql.statement import check  # loads the parser, which web workers do without until then

    check(text)


def request_of_statement(given: Mapping[str, str], window: TimeWindow | None = None) -> tuple[str, dict[str, Any]]:
    """Return title and parameters of a run. Raises RequestRefused.

    `given`: statement, the fields of a chart, and `window`; an explicit time range takes the place of the last.
    """
    check_statement(given.get("statement", ""))
    named = {name: given.get(name, "") for name in ("statement", "window", *CHART_FIELDS)}
    _check_chart(named)
    return request_for(SQL, named, window)


def _check_chart(given: Mapping[str, str]) -> None:
    from analytics.results.query_charts import KINDS

    if given["chart"] not in KINDS:
        known = ", ".join(filter(None, KINDS))
        raise RequestRefused(f"{given['chart'][:40]!r} is not a chart: expected one of {known}")
    if given["chart"] and not (given["x"] and given["y"]):
        raise RequestRefused("a chart needs columns of the result for x and y")


def start(
    request: HttpRequest, given: Mapping[str, str], title: str = "", window: TimeWindow | None = None
) -> AnalysisRun:
    """Run a statement with the permissions of the request's user. Raises RequestRefused."""
    with trail.recording(request, "run SQL", title or "SQL query") as change:
        change.before = {"statement": given.get("statement", "")}  # also of one that is refused
        usual, parameters = request_of_statement(given, window)
        access = access_of(request.user).to_json()
        name = request.user.get_username()
        run = run_service.start(SQL, title or usual, parameters, name, access=access)
        change.before, change.after = None, {"run": str(run.id), **parameters}
    return run


# -- saved queries


def visible_queries(user: AnyUser) -> list[SavedQuery]:
    """Return the saved queries that a user may run: their own, and those shared with them."""
    found = SavedQuery.objects.filter(Q(owner=user.get_username()) | Q(everyone=True) | ~Q(roles=[]))
    return [each for each in found if is_visible(each, user)]


def is_visible(query: SavedQuery, user: AnyUser) -> bool:
    """Return whether a user may run a saved query."""
    return query.owner == user.get_username() or query.everyone or bool(set(query.roles) & set(roles_of(user)))


def get_query_or_404(request: HttpRequest, query_id: int) -> SavedQuery:
    """Return a saved query that the user may run. Raises Http404 for others, which the user must not know of."""
    found = SavedQuery.objects.filter(pk=query_id).first()
    if found is None or not is_visible(found, request.user):
        raise Http404("Query not found.")
    return found


def save_query(request: HttpRequest, existing: SavedQuery | None, given: Mapping[str, Any]) -> SavedQuery:
    """Create a saved query, or change one's own. Raises RequestRefused, PermissionDenied."""
    require(request, Permission.SQL)
    name = " ".join(str(given.get("name", "")).split())
    before = _audited(existing) if existing else None
    with trail.recording(request, "change SQL query" if existing else "save SQL query", name, before=before) as change:
        query = existing or SavedQuery(owner=request.user.get_username())
        _require_own(request, query)
        _check_name(query, name, SavedQuery.objects.filter(owner=query.owner).exclude(pk=query.pk))
        check_statement(given["statement"])
        query.name, query.statement = name, given["statement"]
        query.description = " ".join(str(given.get("description", "")).split())[:MAX_DESCRIPTION]
        query.window = given.get("window") or "24h"
        if not is_window(query.window):
            raise RequestRefused(
                f"{query.window[:20]!r} is not a time range that ends now: a saved query needs one, such as 24h"
            )
        chart = {field: str(given.get(field, "")) for field in CHART_FIELDS}
        _check_chart(chart)
        query.chart = {field: value for field, value in chart.items() if value} if chart["chart"] else {}
        query.everyone, query.roles = bool(given.get("everyone")), _roles(given.get("roles", ()))
        query.save()
        change.after = _audited(query)
    return query


def delete_query(request: HttpRequest, query: SavedQuery) -> None:
    """Delete one's own saved query; reports that run it fail from then on. Raises RequestRefused."""
    with trail.recording(request, "delete SQL query", query.name, before=_audited(query)):
        _require_own(request, query)
        query.delete()


def _require_own(request: HttpRequest, query: SavedQuery) -> None:
    if query.owner != request.user.get_username():
        raise RequestRefused(f"The query “{query.name}” belongs to {query.owner}. Save a copy under another name.")


def _check_name(query: SavedQuery, name: str, others: QuerySet[SavedQuery]) -> None:
    if not name or len(name) > MAX_NAME:
        raise RequestRefused(f"Enter a name of at most {MAX_NAME} characters for the query.")
    if others.filter(name__iexact=name).exists():
        raise RequestRefused(f"You already have a query named “{name}”.")
    if query.pk is None and others.count() >= MAX_QUERIES:
        raise RequestRefused(f"You already have {MAX_QUERIES} saved queries. Delete some first.")


def _roles(given: Any) -> list[str]:
    if unknown := sorted(set(given) - set(SHARED_ROLES)):
        raise RequestRefused(f"{unknown[0][:40]!r} is not a role to share with: one of {', '.join(SHARED_ROLES)}")
    return sorted(set(given))


def _audited(query: SavedQuery) -> dict[str, Any]:
    return {
        "statement": query.statement, "window": query.window, "chart": query.chart, "owner": query.owner,
        "everyone": query.everyone, "roles": query.roles,
    }  # fmt: skip


def schema() -> dict[str, Any]:
    """Return views, columns and functions, as the page and the API show them."""
    from analytics.sql.functions import GROUPS
    from analytics.sql.views import SCHEMA_VERSION, VIEWS

    views = [
        {
            "name": view.name,
            "row": view.row,
            "columns": [
                {"name": each.name, "type": each.type, "nullable": each.is_optional, "meaning": each.meaning}
                for each in view.columns
            ],
        }
        for view in VIEWS.values()
    ]
    functions = {group: [each.name for each in members] for group, members in GROUPS.items()}
    return {"version": SCHEMA_VERSION, "views": views, "functions": functions}
