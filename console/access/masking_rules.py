"""Apply masking rules to headers and bodies. Pure; `console.access.masking` chooses the rules of a user.

Of the rules about a place the first one counts. A body that is covered shows its structure and nothing else, but what
rules show; one that is not covered shows everything, but what rules take away.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache, partial
from typing import Any

import regex

from brokerapp.engine.policy.broker_headers import CAUSE, EARLIER_CAUSE, SIGNATURE
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.jms.properties import CLASH_PREFIX
from console.access.roles import Role, Scope

#: What stands where a value was.
COVER = "••••"
#: Characters left of a value by LAST4.
LAST_CHARACTERS = 4
#: Bytes of a body that rules look through; what is larger is withheld where a rule would have to.
MAX_BODY = 1024 * 1024
MAX_PATTERN = 500
#: Values in values of a JSON body: one that is deeper is withheld, as if it were no JSON.
MAX_DEPTH = 64
#: Seconds that the regular expressions may take over one body; then it is withheld. A page shows 50 messages.
REGEX_SECONDS = 0.1
#: Headers that pages and clients need, and that say nothing of what is in a message.
NEVER_MASKED = frozenset(
    {"message-id", "destination", "timestamp", "content-length", "content-type", SIGNATURE, JMS_HEADER}
)
#: Headers that repeat what another one says: a rule about that one masks these.
DERIVED_HEADERS = {EARLIER_CAUSE: CAUSE}


class MaskTarget(StrEnum):
    """Name the part of a message that a rule masks."""

    HEADER = "header"  #: names of headers and properties, with * and ?
    JSON = "json"  #: a path in a JSON body: $.customer.card, $..card, $.lines[*].price
    BODY = "body"  #: a regular expression in a body of text


class MaskAction(StrEnum):
    """Name what a rule does with the values that it finds."""

    REMOVE = "remove"
    REPLACE = "replace"
    LAST4 = "last4"
    SHOW = "show"


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Represent one masking rule; `role` None stands for all roles."""

    role: Role | None
    scope: Scope
    place: MaskTarget
    pattern: str
    action: MaskAction
    replacement: str = COVER

    @staticmethod
    def parse(role: str, scope: str, place: str, pattern: str, action: str, replacement: str = "") -> MaskRule:
        """Return the rule with these texts. Raises RequestRefused, InvalidDestination."""
        for value, kind in ((place, MaskTarget), (action, MaskAction)):
            if value not in set(kind):
                raise RequestRefused(f"{value!r} is not one of {', '.join(kind)}")
        if role and role not in set(Role):
            raise RequestRefused(f"{role!r} is not one of the roles {', '.join(Role)}")
        rule = MaskRule(
            Role(role) if role else None, Scope.parse(scope or ">"), MaskTarget(place), pattern.strip(),
            MaskAction(action), replacement or COVER,
        )  # fmt: skip
        rule.check()
        return rule

    def check(self) -> None:
        """Raise RequestRefused when the pattern is not valid for its target."""
        if len(self.pattern) > MAX_PATTERN:
            raise RequestRefused(f"pattern: Enter at most {MAX_PATTERN} characters.")
        match self.place:
            case MaskTarget.JSON:
                _parse_path(self.pattern)
            case MaskTarget.BODY:
                try:
                    regex.compile(self.pattern)
                except (regex.error, OverflowError, RecursionError) as error:
                    raise RequestRefused(f"{self.pattern!r} is not a valid regular expression: {error}") from error
            case MaskTarget.HEADER if not self.pattern or self.action is MaskAction.SHOW:
                raise RequestRefused(
                    "A rule for headers cannot use the action show. All users with permission to browse see headers."
                    if self.pattern
                    else "pattern: Enter a header name, or a pattern such as card*."
                )
        if self.place is MaskTarget.BODY and self.action is not MaskAction.SHOW and not self.pattern:
            raise RequestRefused("pattern: Enter a regular expression.")


def rule_for_header(rules: Iterable[MaskRule], name: str) -> MaskRule | None:
    """Return the first rule that masks this header, if any."""
    if name in NEVER_MASKED:
        return None
    said = {name, DERIVED_HEADERS.get(name, name), name.removeprefix(CLASH_PREFIX)}
    about = (rule for rule in rules if rule.place is MaskTarget.HEADER)
    return next((rule for rule in about if any(map(_named(rule.pattern).match, said))), None)


def mask_headers(rules: Sequence[MaskRule], headers: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the masked headers and the names of those that were masked."""
    left, names = {}, []
    for name, value in headers.items():
        rule = rule_for_header(rules, name)
        if rule is None:
            left[name] = value
            continue
        names.append(name)
        if rule.action is not MaskAction.REMOVE:
            left[name] = _masked(rule, value)
    return left, names


@dataclass(frozen=True, slots=True)
class MaskedBody:
    """Hold a body after masking, and the places that were masked."""

    body: bytes
    withheld: str = ""  #: why there is none
    places: tuple[str, ...] = ()  #: what was masked in it


def mask_body(rules: Sequence[MaskRule], body: bytes, *, covered: bool) -> MaskedBody:
    """Return the masked body; with `covered`, all values are hidden that no rule shows."""
    covered = covered and not any(rule.place is MaskTarget.BODY and rule.action is MaskAction.SHOW for rule in rules)
    paths = [rule for rule in rules if rule.place is MaskTarget.JSON]
    regexes = [rule for rule in rules if rule.place is MaskTarget.BODY and rule.action is not MaskAction.SHOW]
    if not body or not (covered or paths or regexes):
        return MaskedBody(body)
    if len(body) > MAX_BODY:
        return MaskedBody(b"", "Hidden: the body is too large to apply masking rules.")
    places: list[str] = []
    if covered or paths:
        try:
            body = _mask_json(paths, body, covered, places)
        except (_NotJsonError, RecursionError):
            if covered:
                return MaskedBody(
                    b"", "Hidden: your role sees masked bodies only, and this body cannot be masked in parts."
                )
            if body.lstrip()[:1] in (b"{", b"["):
                return MaskedBody(b"", "Hidden: masking rules apply to this body, and it is not valid JSON.")
    if regexes:
        try:
            body = _mask_text(regexes, body.decode(), places).encode()
        except UnicodeDecodeError:
            return MaskedBody(b"", "Hidden: masking rules apply to this body, and it is not text.")
        except TimeoutError:
            return MaskedBody(b"", "Hidden: applying masking rules to this body timed out.")
    return MaskedBody(body, places=tuple(dict.fromkeys(places)))


class _NotJsonError(Exception):
    pass


# -- JSON

_REMOVED = object()


def _mask_json(rules: Sequence[MaskRule], body: bytes, covered: bool, places: list[str]) -> bytes:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise _NotJsonError from error
    if covered and not isinstance(document, dict | list):
        raise _NotJsonError
    looks = [_JsonCursor(rule, _parse_path(rule.pattern), frozenset({0})) for rule in rules]
    found = _walk(looks, document, (), covered, None, places)
    if not places:
        return body  # as it was written
    return b"" if found is _REMOVED else json.dumps(found, ensure_ascii=False).encode(errors="backslashreplace")


def _walk(
    looks: Sequence[_JsonCursor],
    value: Any,
    path: tuple[Any, ...],
    covered: bool,
    forced: MaskRule | None,
    places: list[str],
) -> Any:
    if len(path) > MAX_DEPTH:
        raise _NotJsonError
    rule = next((look.rule for look in looks if look.is_there), None)
    if rule is not None and rule.action is MaskAction.SHOW:
        covered, forced = False, None
    elif rule is not None and (rule.action is not MaskAction.LAST4 or not isinstance(value, dict | list)):
        places.append(_format_path(path))
        return _REMOVED if rule.action is MaskAction.REMOVE else _masked(rule, _text(value))
    elif rule is not None:
        forced = rule
    if isinstance(value, dict):
        pairs = (
            (name, _walk(_descend(looks, name), each, (*path, name), covered, forced, places))
            for name, each in value.items()
        )
        return {name: each for name, each in pairs if each is not _REMOVED}
    if isinstance(value, list):
        items = (
            _walk(_descend(looks, at), each, (*path, at), covered, forced, places) for at, each in enumerate(value)
        )
        return [each for each in items if each is not _REMOVED]
    if forced is not None:
        places.append(_format_path(path))
        return _masked(forced, _text(value))
    if covered and value is not None:
        places.append("all values")
        return COVER
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format_path(path: tuple[Any, ...]) -> str:
    return "$" + "".join("[*]" if isinstance(step, int) else f".{step}" for step in path)


#: A step of a path: .name, .*, [*], [3], ['name'], or .. before any of them.
_STEP = re.compile(r"(\.\.)?(?:\.?([^.\[\]'*]+)|\.?(\*)|\[(\*|\d+)\]|\['([^']*)'\])")
_ANY, _DEEP = object(), object()


@lru_cache(maxsize=1024)
def _parse_path(pattern: str) -> tuple[Any, ...]:
    """Return the steps of a JSON path; a bare name matches at any depth. Raises RequestRefused."""
    text = pattern.strip()
    if text and not text.startswith("$"):
        text = f"$..{text}"
    steps, at = [], 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise RequestRefused(
                f"{pattern!r} is not a valid JSON path, starting at {text[at:]!r}. Use $.customer.card or $..card."
            )
        deep, name, star, index, quoted = found.groups()
        steps += [_DEEP] if deep else []
        if star or index == "*":
            steps.append(_ANY)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(name if quoted is None else quoted)
        at = found.end()
    if not text:
        raise RequestRefused("pattern: Enter a JSON path, such as $.customer.card, or $..card for any depth.")
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class _JsonCursor:
    """Track how many steps of a rule's path are matched at one place of a document."""

    rule: MaskRule
    steps: tuple[Any, ...]
    taken: frozenset[int]

    @property
    def is_there(self) -> bool:
        return len(self.steps) in self.taken

    def into(self, name: Any) -> _JsonCursor:
        """Return the cursor for a member, one level deeper."""
        taken = set()
        for at in self.taken:
            if at < len(self.steps) and self.steps[at] is _DEEP:
                taken.add(at)
                at += 1
            if at < len(self.steps) and (self.steps[at] is _ANY or self.steps[at] == name):
                taken.add(at + 1)
        return _JsonCursor(self.rule, self.steps, frozenset(taken))


def _descend(looks: Sequence[_JsonCursor], name: Any) -> list[_JsonCursor]:
    return [inside for look in looks if (inside := look.into(name)).taken]


# -- text


def _mask_text(rules: Sequence[MaskRule], text: str, places: list[str]) -> str:
    until = time.monotonic() + REGEX_SECONDS
    for rule in rules:
        cover, left = partial(_note_match, rule), max(0.001, until - time.monotonic())
        text, count = regex.subn(rule.pattern, cover, text, timeout=left, concurrent=True)  # other threads go on
        if count:
            places.append(f"what matches {rule.pattern}")
    return text


def _note_match(rule: MaskRule, found: regex.Match[str]) -> str:
    return "" if rule.action is MaskAction.REMOVE else _masked(rule, found.group())


def _masked(rule: MaskRule, text: str) -> str:
    if rule.action is MaskAction.LAST4:
        return COVER + text[-LAST_CHARACTERS:] if len(text) > LAST_CHARACTERS else COVER
    return rule.replacement


@lru_cache(maxsize=1024)
def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern), re.IGNORECASE)
