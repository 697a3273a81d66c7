"""The function library of the server: the files of functions/ as one text. Its version is the text itself."""

from __future__ import annotations

from pathlib import Path

#: What the library is called, and, with an underscore, how the names of its functions begin (library.lua).
NAME = "sluice_v1"
PREFIX = f"{NAME}_"

#: In the order in which they build on each other.
_FILES = (
    "library", "stored_form", "accounting", "entries", "places", "moments",
    "batch", "declaring", "refusing", "handing_over", "appending", "settling", "commit",
    "nodes", "dropping", "numbers", "requests", "versions", "clustering",
)  # fmt: skip

LIBRARY = "\n".join((Path(__file__).parent / "functions" / f"{name}.lua").read_text() for name in _FILES)
