"""Apply masking rules to bodies: JSON, text, and the values of map and stream messages. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import regex

from brokerapp.errors import OpenWireError
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.openwire.marshalled_values import decode_map, decode_stream, encode_map, encode_stream
from console.access.json_paths import PathCursor, descend, parse_path
from console.access.masking_rules import COVER, MAX_BODY, MaskAction, MaskRule, MaskTarget, masked_value

#: Values in values of a JSON body: one that is deeper is withheld, as if it were no JSON.
MAX_DEPTH = 64
#: Seconds that the regular expressions may take over one body; then it is withheld. A page shows 50 messages.
REGEX_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class MaskedBody:
    """Hold a body after masking, and the places that were masked."""

    body: bytes
    withheld: str = ""  #: why there is none
    places: tuple[str, ...] = ()  #: what was masked in it


def mask_body(rules: Sequence[MaskRule], body: bytes, *, covered: bool, form: JmsForm | None = None) -> MaskedBody:
    """Return the masked body; with `covered`, all values are hidden that no rule shows.

    To rules, the values of a map or stream message (see `form`) are a JSON document, and texts in it.
    """
    covered = covered and not any(rule.place is MaskTarget.BODY and rule.action is MaskAction.SHOW for rule in rules)
    paths = [rule for rule in rules if rule.place is MaskTarget.JSON]
    regexes = [rule for rule in rules if rule.place is MaskTarget.BODY and rule.action is not MaskAction.SHOW]
    if not body or not (covered or paths or regexes):
        return MaskedBody(body)
    if len(body) > MAX_BODY:
        return MaskedBody(b"", "Hidden: the body is too large to apply masking rules.")
    if form is not None and form.kind in (JmsKind.MAP, JmsKind.STREAM):
        return _mask_values(form.kind, paths, regexes, body, covered)
    return _mask_bytes(paths, regexes, body, covered)


def _mask_bytes(paths: Sequence[MaskRule], regexes: Sequence[MaskRule], body: bytes, covered: bool) -> MaskedBody:
    """Return a masked body that is JSON, or text, or none of both."""
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
            body = _mask_text(regexes, body.decode(), places, _deadline()).encode()
        except UnicodeDecodeError:
            return MaskedBody(b"", "Hidden: masking rules apply to this body, and it is not text.")
        except TimeoutError:
            return MaskedBody(b"", _TIMED_OUT)
    return MaskedBody(body, places=tuple(dict.fromkeys(places)))


_TIMED_OUT = "Hidden: applying masking rules to this body timed out."


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
    found = _mask_document(rules, document, covered, places)
    if not places:
        return body  # as it was written
    return b"" if found is _REMOVED else json.dumps(found, ensure_ascii=False).encode(errors="backslashreplace")


def _mask_document(rules: Sequence[MaskRule], document: Any, covered: bool, places: list[str]) -> Any:
    """Return a masked document; _REMOVED where nothing of it is left."""
    looks = [PathCursor(rule, parse_path(rule.pattern), frozenset({0})) for rule in rules]
    return _walk(looks, document, (), covered, None, places)


def _walk(
    looks: Sequence[PathCursor[MaskRule]],
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
        return _REMOVED if rule.action is MaskAction.REMOVE else masked_value(rule, _text(value))
    elif rule is not None:
        forced = rule
    if isinstance(value, dict):
        pairs = (
            (name, _walk(descend(looks, name), each, (*path, name), covered, forced, places))
            for name, each in value.items()
        )
        return {name: each for name, each in pairs if each is not _REMOVED}
    if isinstance(value, list):
        items = (_walk(descend(looks, at), each, (*path, at), covered, forced, places) for at, each in enumerate(value))
        return [each for each in items if each is not _REMOVED]
    if forced is not None:
        places.append(_format_path(path))
        return masked_value(forced, _text(value))
    if covered and value is not None:
        places.append("all values")
        return COVER
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=bytes.hex)


def _format_path(path: tuple[Any, ...]) -> str:
    return "$" + "".join("[*]" if isinstance(step, int) else f".{step}" for step in path)


# -- text


def _deadline() -> float:
    return time.monotonic() + REGEX_SECONDS


def _mask_text(rules: Sequence[MaskRule], text: str, places: list[str], until: float) -> str:
    for rule in rules:
        cover, left = partial(_note_match, rule), max(0.001, until - time.monotonic())
        text, count = regex.subn(rule.pattern, cover, text, timeout=left, concurrent=True)  # other threads go on
        if count:
            places.append(f"what matches {rule.pattern}")
    return text


def _note_match(rule: MaskRule, found: regex.Match[str]) -> str:
    return "" if rule.action is MaskAction.REMOVE else masked_value(rule, found.group())


# -- map and stream messages


def _mask_values(
    kind: JmsKind, paths: Sequence[MaskRule], regexes: Sequence[MaskRule], body: bytes, covered: bool
) -> MaskedBody:
    """Return the masked values of a map or stream message; those that are masked become texts."""
    places: list[str] = []
    try:
        values = decode_map(body) if kind is JmsKind.MAP else decode_stream(body)
        masked = _mask_document(paths, values, covered, places)
        masked = _mask_texts(regexes, masked, places, _deadline())
        if not places:
            return MaskedBody(body)
        found = b"" if masked is _REMOVED else encode_map(masked) if kind is JmsKind.MAP else encode_stream(masked)
    except (OpenWireError, _NotJsonError):
        return MaskedBody(b"", "Hidden: masking rules apply to this body, and its values cannot be read.")
    except TimeoutError:
        return MaskedBody(b"", _TIMED_OUT)
    return MaskedBody(found, places=tuple(dict.fromkeys(places)))


def _mask_texts(rules: Sequence[MaskRule], value: Any, places: list[str], until: float) -> Any:
    """Return a value with all texts in it masked by regular expressions: names, numbers and bytes as text, too."""
    if not rules or value is _REMOVED:
        return value
    if isinstance(value, dict):
        return {
            _mask_text(rules, name, places, until): _mask_texts(rules, each, places, until)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_mask_texts(rules, each, places, until) for each in value]
    if isinstance(value, bytes):
        return _mask_raw(rules, value, places, until)
    if value is None:
        return value
    text = _text(value)
    found = _mask_text(rules, text, places, until)
    return value if found == text else found


def _mask_raw(rules: Sequence[MaskRule], value: bytes, places: list[str], until: float) -> bytes | str:
    """Return bytes that are masked as the text that they are; a cover for those that are none."""
    try:
        return _mask_text(rules, value.decode(), places, until).encode()
    except UnicodeDecodeError:
        places.append("bytes that are not text")
        return COVER
