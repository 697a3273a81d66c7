"""Parse the path of a Jolokia GET request, with `!` as the escape character. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

#: Stands for an encoded slash while a path is taken apart: it is part of a name, whoever decodes first.
_SLASH = "\0"
_PART = re.compile(r"(?:!.|[^!/]|!$)+", re.S)
_ESCAPE = re.compile(r"!(.)", re.S)


def split(raw: str) -> list[str]:
    """Return the parts of a percent-encoded path: `read/a!/b/c` is `read`, `a/b`, `c`."""
    return split_decoded(unquote(re.sub("%2[fF]", _SLASH, raw)))


def split_decoded(path: str) -> list[str]:
    """Return the parts of a decoded path, as the parameter `p` has it; empty parts are dropped."""
    return [unescape(each) for each in _PART.findall(path)]


def unescape(part: str) -> str:
    """Return the part without escapes: `!!` is `!`, `!/` is `/`."""
    return _ESCAPE.sub(r"\1", part).replace(_SLASH, "/")


def join(parts: Iterable[str]) -> str:
    """Return the path of these parts; the inverse of split."""
    return "/".join(quote(escape(each), safe="!:=,*") for each in parts)


def escape(part: str) -> str:
    """Return the part with `!`, `/` and `"` escaped."""
    return part.replace("!", "!!").replace("/", "!/").replace('"', '!"')
