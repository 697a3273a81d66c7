"""The path of a Jolokia GET request: parts between slashes, in which `!` escapes what would mean something. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

#: Stands for an encoded slash while a path is taken apart: it is part of a name, whoever decodes first.
_SLASH = "\0"
_PART = re.compile(r"(?:!.|[^!/]|!$)+", re.S)
_ESCAPE = re.compile(r"!(.)", re.S)


def split(raw: str) -> list[str]:
    """The parts of a path as it came over the wire, percent-encoded: `read/a!/b/c` is `read`, `a/b`, `c`."""
    return split_decoded(unquote(re.sub("%2[fF]", _SLASH, raw)))


def split_decoded(path: str) -> list[str]:
    """The parts of a path that is decoded already, as the parameter `p` carries it. Empty parts count for nothing."""
    return [unescape(each) for each in _PART.findall(path)]


def unescape(part: str) -> str:
    """`!!` is `!`, `!/` is `/`, and so for any character."""
    return _ESCAPE.sub(r"\1", part).replace(_SLASH, "/")


def join(parts: Iterable[str]) -> str:
    """The inverse of split."""
    return "/".join(quote(escape(each), safe="!:=,*") for each in parts)


def escape(part: str) -> str:
    """A part in which `!`, `/` and `"` stand for themselves."""
    return part.replace("!", "!!").replace("/", "!/").replace('"', '!"')
