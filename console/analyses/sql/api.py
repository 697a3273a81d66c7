"""SQL over recorded traffic: views and functions, runs, saved queries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from console.access.roles import Permission
from console.analyses.api import SINCE_HELP, UNTIL_HELP, RunOut
from console.analyses.sql import sql_service
from console.analyses.sql.models import SavedQuery
from console.analyses.time_range_form import requested_window
from console.api.common.inputs import RequestBody
from console.api.common.operations import operation

router = Router(tags=["sql"])


class SqlColumnOut(Schema):
    """A column of a view."""

    name: str
    type: str
    nullable: bool
    meaning: str


class SqlViewOut(Schema):
    """A view that statements can read, and what one row of it is."""

    name: str
    row: str
    columns: list[SqlColumnOut]


class SqlSchemaOut(Schema):
    """The version of the views, the views, and the functions by group."""

    version: int
    views: list[SqlViewOut]
    functions: dict[str, list[str]]


class SqlRunIn(RequestBody):
    """A statement to run over a time range: `window` until now (24h by default), or from `since` to `until`.

    `chart`: line, area, bar or stacked, with columns of the result for `x`, `y` and `series`.
    """

    statement: str
    window: str = ""
    since: str = Field("", description=SINCE_HELP)
    until: str = Field("", description=UNTIL_HELP)
    chart: str = ""
    x: str = ""
    y: str = ""
    series: str = ""


class SqlQueryIn(RequestBody):
    """A statement to save: `everyone` shares it with all who may write SQL, `roles` with those of them in a role."""

    name: str
    statement: str
    description: str = ""
    window: str = "24h"
    chart: str = ""
    x: str = ""
    y: str = ""
    series: str = ""
    everyone: bool = False
    roles: list[str] = []


class SqlQueryOut(Schema):
    """A saved query."""

    id: int
    name: str
    description: str
    statement: str
    window: str
    chart: dict[str, str]
    owner: str
    everyone: bool
    roles: list[str]
    created: datetime
    changed: datetime


class SqlQueryRunIn(RequestBody):
    """The time range of a run of a saved query, in place of its own."""

    window: str = ""
    since: str = Field("", description=SINCE_HELP)
    until: str = Field("", description=UNTIL_HELP)


@operation(router, "GET", "/schema", Permission.SQL, response=SqlSchemaOut)
def get_sql_schema(request: HttpRequest) -> Any:
    """Get the views with their columns, and the functions."""
    return sql_service.schema()


@operation(router, "POST", "/runs", Permission.SQL, response={201: RunOut})
def run_sql(request: HttpRequest, wanted: SqlRunIn) -> Any:
    """Run a statement. State and result are those of a run of an analysis."""
    window = requested_window(wanted.window, wanted.since, wanted.until)
    return Status(201, sql_service.start(request, wanted.model_dump(), window=window))


@operation(router, "GET", "/queries", Permission.SQL, response=list[SqlQueryOut])
def list_sql_queries(request: HttpRequest) -> Any:
    """List saved queries: one's own, and those that are shared."""
    return sql_service.visible_queries(request.user)


@operation(router, "POST", "/queries", Permission.SQL, response={201: SqlQueryOut})
def create_sql_query(request: HttpRequest, wanted: SqlQueryIn) -> Any:
    """Save a query."""
    return Status(201, sql_service.save_query(request, None, wanted.model_dump()))


@operation(router, "GET", "/queries/{int:query_id}", Permission.SQL, response=SqlQueryOut)
def get_sql_query(request: HttpRequest, query_id: int) -> SavedQuery:
    """Get a saved query."""
    return sql_service.get_query_or_404(request, query_id)


@operation(router, "PUT", "/queries/{int:query_id}", Permission.SQL, response=SqlQueryOut)
def change_sql_query(request: HttpRequest, query_id: int, wanted: SqlQueryIn) -> SavedQuery:
    """Replace one's own saved query."""
    existing = sql_service.get_query_or_404(request, query_id)
    return sql_service.save_query(request, existing, wanted.model_dump())


@operation(router, "DELETE", "/queries/{int:query_id}", Permission.SQL, response={204: None})
def delete_sql_query(request: HttpRequest, query_id: int) -> Any:
    """Delete one's own saved query. Reports that run it fail afterwards."""
    sql_service.delete_query(request, sql_service.get_query_or_404(request, query_id))
    return Status(204, None)


@operation(router, "POST", "/queries/{int:query_id}/run", Permission.SQL, response={201: RunOut})
def run_sql_query(request: HttpRequest, query_id: int, wanted: SqlQueryRunIn) -> Any:
    """Run a saved query with one's own permissions."""
    query = sql_service.get_query_or_404(request, query_id)
    window = requested_window(wanted.window, wanted.since, wanted.until)
    given = query.parameters | ({"window": wanted.window} if wanted.window else {})
    return Status(201, sql_service.start(request, given, query.name, window))
