"""Show why the broker refused a change on the page that follows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from brokerapp.errors import RequestRefused, StoreUnavailable


@contextmanager
def refusals_shown(request: HttpRequest) -> Iterator[None]:
    """Run the block; add the reason as a message when the broker refuses its change, or a store does not answer."""
    try:
        yield
    except (RequestRefused, StoreUnavailable) as refused:
        messages.error(request, sentence_of(refused))


def sentence_of(error: Exception) -> str:
    """Return the text of an error as a sentence."""
    text = str(error).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
