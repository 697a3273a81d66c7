"""Read pairs of names and values as Java writes them: in files, and in what a broker says of its bridges. Pure."""

from __future__ import annotations

import re

from brokerapp.openwire.encoding.modified_utf8 import join_surrogates

_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*")
_PAIR = re.compile(r"((?:\\.|[^\\:=\s])*)\s*[:=]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs of a property file."""
    lines = (line.lstrip() for line in _CONTINUED.sub(r"\1", text).splitlines())
    pairs = (_PAIR.fullmatch(line) for line in lines if line and line[0] not in "#!")
    return {_unescaped(pair[1]): _unescaped(pair[2].rstrip("\r")) for pair in pairs if pair is not None}


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)

    found = _ESCAPE.sub(character, text)
    return found if found.isascii() else join_surrogates(found)
