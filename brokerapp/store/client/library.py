"""The function library of the server: the files of functions/ as one text.

It is named by its content, so that nodes of several versions on one server each call their own.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

#: In the order in which they build on each other.
_FILES = (
    "library", "history", "stored_form", "accounting", "entries", "priority_index", "moments", "copies",
    "batch", "declaring", "limits", "bridge_dedup", "appending", "settling", "commit",
    "nodes", "shards", "moving", "dropping", "numbers", "requests", "versions", "clustering",
)  # fmt: skip

_TEXT = "\n".join((Path(__file__).parents[1] / "functions" / f"{name}.lua").read_text() for name in _FILES)
#: What the library is called, and, with an underscore, how the names of its functions begin (library.lua).
NAME = f"sluice_{hashlib.sha256(_TEXT.encode()).hexdigest()[:16]}"
PREFIX = f"{NAME}_"
LIBRARY = _TEXT.replace("@LIBRARY@", NAME)
#: Names of libraries of this and other versions. The first version called its own `sluice_v1`: it does not load it
#: again when it is gone.
LIBRARY_NAME = re.compile("sluice_[0-9a-f]{16}")


def is_missing(error: Exception) -> bool:
    """Return whether the error means that the server does not have the library."""
    return "Function not found" in str(error)
