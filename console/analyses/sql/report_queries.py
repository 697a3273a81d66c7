"""Saved queries in reports: what a question of a report asks, and who may schedule and read it.

Queries of a report run with the permissions of the report's owner at the time of each edition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth import get_user_model

from analytics.requests.catalogue import SQL
from brokerapp.errors import RequestRefused
from console.access.permissions import AnyUser, has_permission
from console.access.roles import Permission
from console.analyses.sql import sql_service
from console.analyses.sql.models import SavedQuery
from console.analyses.sql_access import access_of


def question_for(query_id: str, window: str, user: AnyUser) -> dict[str, Any]:
    """Return the question of a report that runs a saved query. Raises RequestRefused."""
    query = _find(query_id, user)
    question = {"kind": SQL, "query": query.pk, "window": window or query.window}
    request_of(question, user)
    return question


def request_of(question: Mapping[str, Any], owner: AnyUser | None) -> tuple[str, dict[str, Any]]:
    """Return title and parameters of a run for a question. Raises RequestRefused if the owner may not run it."""
    if owner is None:
        raise RequestRefused("The owner of the report has no active account.")
    access_of(owner)
    query = _find(question.get("query"), owner)
    _, parameters = sql_service.request_of_statement({**query.parameters, "window": question.get("window", "")})
    return query.name, parameters


def owner_named(name: str) -> AnyUser | None:
    """Return the active user of this name, as the owner of a report."""
    return get_user_model().objects.filter(username=name, is_active=True).first()


def runs_sql(questions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one of the questions of a report is a saved query."""
    return any(each["kind"] == SQL for each in questions)


def may_read_of(user: AnyUser, owner_name: str) -> bool:
    """Return whether a user may read what queries show the owner of a report."""
    owner = owner_named(owner_name)
    if owner is None or not all(has_permission(each, Permission.SQL) for each in (user, owner)):
        return False
    return access_of(user).covers(access_of(owner))


def require_own_access(user: AnyUser) -> None:
    """Raise RequestRefused if a token shows less than its user sees: a report works with all that the user sees."""
    owner = owner_named(user.get_username())
    if owner is None or access_of(user) != access_of(owner):
        raise RequestRefused("A token with limited destinations cannot schedule SQL queries.")


def _find(query_id: Any, user: AnyUser) -> SavedQuery:
    found = SavedQuery.objects.filter(pk=query_id).first() if str(query_id or "").isdecimal() else None
    if found is None or not sql_service.is_visible(found, user):
        raise RequestRefused(f"The SQL query {str(query_id)[:20]} does not exist or is not shared with its user.")
    return found
