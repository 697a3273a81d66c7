"""Import the modules of pages when a web process starts, not at the first request.

Measured on a busy machine of two cores: the first page of a process imports 470 modules and took 4 s, the first page
with results brings pandas (by way of pyarrow's conversions) and took 1.5 to 3 s more.
"""

from __future__ import annotations

import threading
from importlib import import_module

from django.urls import get_resolver

#: What pages with results of analyses, journeys and charts need, and other pages do not.
RESULT_MODULES = ("pyarrow.dataset", "console.analyses.charts")


def load_pages() -> None:
    """Import the modules of all pages."""
    get_resolver().url_patterns  # noqa: B018  (reading it imports the views)


def load_results_soon() -> threading.Thread:
    """Import in the background what only some pages need."""
    thread = threading.Thread(target=_load_results, name="loading", daemon=True)
    thread.start()
    return thread


def _load_results() -> None:
    for each in RESULT_MODULES:
        import_module(each)
