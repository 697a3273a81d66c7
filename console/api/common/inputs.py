"""Validate bodies and query parameters of the API; unknown ones are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from django.http import HttpRequest
from ninja.errors import HttpError, ValidationError
from ninja.operation import Operation
from ninja.params.models import QueryModel
from ninja.parser import Parser
from pydantic import BaseModel, ConfigDict, Field

#: The largest number that the store and the database keep.
MAX_NUMBER = 2**63 - 1

#: A number from 0 that the store can keep: a position in a queue, a version, a time in milliseconds.
Count = Annotated[int, Field(ge=0, le=MAX_NUMBER)]

#: A moment in seconds since 1970, within the years that dates can have.
Seconds = Annotated[int, Field(ge=0, le=253_402_300_799)]


class JsonParser(Parser):
    """Parse bodies that are declared as JSON; refuse others, which forms of other sites could send."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value of the body. Raises HttpError with status 415 for another type of content."""
        if request.content_type != "application/json":
            declared = f"not {request.content_type}" if request.content_type else "and none is given"
            raise HttpError(415, f"Content-Type must be application/json, {declared}.")
        return super().parse_body(request)


class RequestBody(BaseModel):
    """Parse a JSON object; unknown fields and invalid values are refused by name.

    What was converted in earlier versions still is, such as the text "10" where a number is expected.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def parameters_of(operation: Operation) -> frozenset[str]:
    """Return the names of an operation's query parameters."""
    queries = [each for each in operation.models if issubclass(each, QueryModel)]
    return frozenset(name for each in queries for name in each.__ninja_flatten_map__)


def refuse_unknown(request: HttpRequest, known: Iterable[str]) -> None:
    """Raise ValidationError that names each unknown query parameter."""
    if unknown := sorted(request.GET.keys() - set(known)):
        raise ValidationError([{"type": "extra_forbidden", "loc": ("query", each), "msg": ""} for each in unknown])
