"""Splits the text of a selector into tokens.

Comments (`-- to a line end`, `/* .. */`) and blanks separate tokens and are dropped; without a line end behind
it, `--` is two signs, as in ActiveMQ. Names are letters, digits, `_` and `$`; the hyphenated names of STOMP's own
headers are names, too. Under the prefix `hyphenated_props:` every name may hold hyphens, and any name may be written in
double quotes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from brokerapp.errors import SelectorSyntaxError
from brokerapp.model.selector_prefixes import HYPHENATED, split_prefixes
from brokerapp.selectors.identifiers import STOMP

#: Characters a selector may have.
MAX_LENGTH = 16_384

KEYWORDS = frozenset(
    ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE", "XPATH", "XQUERY")
)


class SelectorToken(NamedTuple):
    """`kind` is a keyword, an operator, or name, text or number (only these have a `value`), or end."""

    kind: str
    position: int
    source: str
    value: str | int | float | None = None

    @property
    def text(self) -> str:
        """The value of a name or a text literal."""
        return str(self.value)


_NAME = r"(?:[^\W\d]|\$)[\w$]*"
_HYPHENATED_NAME = r"(?:[^\W\d]|\$)[\w$-]*"
_STOMP_NAME = rf"(?:{'|'.join(name for name in STOMP if '-' in name)})(?![\w$-])"

_PATTERN = r"""
    (?P<blank>  \s+ | /\*.*?\*/ )
  | (?P<number> 0[xX][\w$]* | (?:\d|\.\d)(?:[eE][+-]?(?=\d)|[\w.$])* )
  | (?P<text>   '(?:[^']|'')*' )
  | (?P<name>   {name} )
  {quoted}
  | (?P<operator> <> | <= | >= | [=<>+\-*/%(),] )
"""


def _compiled(name: str, quoted: str) -> re.Pattern[str]:
    return re.compile(_PATTERN.format(name=name, quoted=quoted), re.VERBOSE | re.DOTALL)


_PLAIN = _compiled(f"{_STOMP_NAME} | {_NAME}", "")
#: Looked for before the last line end only, where it always matches: a try at each of many hyphens would take for ever.
_LINE_COMMENT = re.compile(r"--[^\n\r]*[\n\r]")
_WITH_HYPHENS = _compiled(_HYPHENATED_NAME, '| (?P<quoted> "(?:[^"]|"")+" )')


def is_plain_name(name: str) -> bool:
    """Return whether the name can be written without the prefix for hyphenated names."""
    match = _PLAIN.fullmatch(name)
    return match is not None and match.lastgroup == "name" and name.upper() not in KEYWORDS


#: Form of a numeric literal -> its value. Leading zeros make a number octal, as in ActiveMQ.
_NUMBERS = (
    (re.compile(r"(0[xX][0-9a-fA-F]+)[lL]?"), lambda digits: int(digits, 16)),
    (re.compile(r"(0[0-7]*)[lL]?"), lambda digits: int(digits, 8)),
    (re.compile(r"([1-9][0-9]*)[lL]?"), int),
    (re.compile(r"((?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?)"), float),
)

#: Numeric literals are smaller than this (doubles end a little later) and have at most so many characters.
_LARGEST, _LONGEST = 1e300, 400

_UNEXPECTED = {
    "'": "unterminated text literal",
    '"': "use single quotes for text, and no quotes for names",
    "/*": "unterminated comment",
    "!=": "'!=' is written '<>'",
}


def tokens(text: str) -> list[SelectorToken]:
    """Split a selector into tokens, the last of kind `end`. Raises SelectorSyntaxError."""
    if len(text) > MAX_LENGTH:
        raise SelectorSyntaxError(text[:40] + "...", MAX_LENGTH, f"a selector may have at most {MAX_LENGTH} characters")
    prefixes, condition = split_prefixes(text)
    position, pattern = len(text) - len(condition), _WITH_HYPHENS if HYPHENATED in prefixes else _PLAIN
    last_line_end = max(text.rfind("\n"), text.rfind("\r"))
    result = []
    while position < len(text):
        if position < last_line_end and (comment := _LINE_COMMENT.match(text, position)):
            position = comment.end()
            continue
        match = pattern.match(text, position)
        if match is None or (match[0] == "/" and text.startswith("/*", position)):
            raise SelectorSyntaxError(text, position, _what_is_wrong(text, position))
        if match.lastgroup != "blank":
            result.append(_token(text, match))
        position = match.end()
    return [*result, SelectorToken("end", len(text), "the end")]


def _token(text: str, match: re.Match[str]) -> SelectorToken:
    source, position = match[0], match.start()
    match match.lastgroup:
        case "number":
            return SelectorToken("number", position, source, _number(text, position, source))
        case "text":
            return SelectorToken("text", position, source, source[1:-1].replace("''", "'"))
        case "quoted":
            return SelectorToken("name", position, source, source[1:-1].replace('""', '"'))
        case "name" if source.upper() not in KEYWORDS:
            return SelectorToken("name", position, source, source)
    return SelectorToken(source.upper(), position, source)


def _number(text: str, position: int, source: str) -> int | float:
    for form, read in _NUMBERS:
        if (match := form.fullmatch(source)) is not None:
            if len(source) <= _LONGEST and (value := read(match[1])) <= _LARGEST:
                return value
            raise SelectorSyntaxError(text, position, f"the number {source[:20]} is too large")
    raise SelectorSyntaxError(text, position, f"{source!r} is not a number")


def _what_is_wrong(text: str, position: int) -> str:
    reasons = (reason for start, reason in _UNEXPECTED.items() if text.startswith(start, position))
    return next(reasons, f"unexpected {text[position]!r}")
