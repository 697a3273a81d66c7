"""Run Python as if packages were not installed: they are hidden from imports, in child processes, too."""

from __future__ import annotations

import os
from pathlib import Path

#: What only the console brings, and what only analytics does, by the names of their modules.
CONSOLE = ("django", "channels", "celery", "kombu", "uvicorn", "whitenoise", "ninja", "stomp", "pyarrow", "plotly")
ANALYTICS = ("pyspark", "pandas", "opentelemetry", "sqlglot", "grpc", "google")

_SITE = """\
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else super().find_spec(name, path, target)

sys.meta_path[:] = [Hiding if each is PathFinder else each for each in sys.meta_path]
"""


def without(folder: Path, *hidden: str) -> dict[str, str]:
    """Return the environment of a process that finds none of these packages; `folder` is for what hides them."""
    (folder / "sitecustomize.py").write_text(_SITE.format(hidden=hidden))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "SLUICE_"))}
    return {**kept, "PYTHONPATH": str(folder)}
