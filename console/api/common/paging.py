"""Page the lists of the API, by number and size of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

from ninja import Query, Schema
from pydantic import BeforeValidator, Field

T = TypeVar("T")
#: An object, such as a destination, that is returned as its text.
Text = Annotated[str, BeforeValidator(lambda value: value if value is None else str(value))]
#: Rows of a page: what is usual, and the most.
DEFAULT_SIZE, MAX_SIZE = 50, 500


class PageQuery(Schema):
    """Hold the page number and size of a request."""

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    size: Annotated[int, Field(ge=1, le=MAX_SIZE)] = DEFAULT_SIZE


class Page(Schema, Generic[T]):
    """A page of items and the number of all."""

    items: list[T]
    total: int
    page: int
    pages: int


Paged = Annotated[PageQuery, Query()]


def page_of(rows: Any, query: PageQuery, total: int | None = None) -> dict[str, Any]:
    """Return a page of a sequence or of a database query."""
    count = total if total is not None else len(rows) if isinstance(rows, Sequence) else rows.count()
    first = (query.page - 1) * query.size
    return {
        "items": list(rows[first : first + query.size]),
        "total": count,
        "page": query.page,
        "pages": max(1, -(-count // query.size)),
    }
