"""Parses an edit of messages from a form, or from JSON of the API. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.engine.editing.message_edit import MAX_LIFE, MAX_PRIORITY, MessageEdit, body_of
from brokerapp.engine.editing.message_properties import EDITABLE, KEEP_TYPE, check_name, check_type, leaves_type
from brokerapp.errors import RequestRefused

#: Values of a form: in place of a type to remove a property, in place of an encoding to keep the body.
REMOVE_PROPERTY, KEEP_BODY = "remove", "keep"
#: Encodings of a body that make a bytes message.
BINARY = ("base64", "hex")
#: Values of the field `persistent` in a form.
PERSISTENCE = {"": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class EditForm:
    """The values of the edit form, as text."""

    rows: tuple[tuple[str, str, str], ...] = ()  #: name, type or `remove`, value
    persistent: str = ""
    priority: str = ""
    lives: str = ""  #: seconds
    encoding: str = KEEP_BODY
    body: str = ""
    keeps: bool = False

    @staticmethod
    def read(form: Any) -> EditForm:
        """Read the posted form."""
        names, types, values = (form.getlist(f"property-{part}") for part in ("name", "type", "value"))
        rows = zip(names, types, values, strict=False)
        return EditForm(
            tuple((name.strip(), kind, value) for name, kind, value in rows if name.strip() or value),
            form.get("persistent", ""), form.get("priority", "").strip(), form.get("lives", "").strip(),
            form.get("encoding", KEEP_BODY), form.get("body", "").replace("\r\n", "\n"), form.get("keeps") == "true",
        )  # fmt: skip

    def to_edit(self) -> MessageEdit:
        """Return the edit. Raises RequestRefused, which names the field and the rule."""
        values: dict[str, str] = {}
        removed: list[str] = []
        types: dict[str, str] = {}
        for name, kind, value in self.rows:
            check_name(name)
            if name in values or name in removed:
                raise RequestRefused(f"property {name!r} is given twice")
            if kind == REMOVE_PROPERTY:
                removed.append(name)
                continue
            values[name] = check_type(name, kind, value)
            if name not in EDITABLE and not leaves_type(kind):
                types[name] = kind
        if self.persistent not in PERSISTENCE:
            raise RequestRefused(f"persistent: {self.persistent!r} must be true or false")
        found = MessageEdit(
            values, tuple(removed), PERSISTENCE[self.persistent],
            _parse_number("priority", self.priority, MAX_PRIORITY), _parse_number("lives", self.lives, MAX_LIFE),
            None if self.encoding == KEEP_BODY else body_of(self.body, self.encoding), self.encoding in BINARY,
            self.keeps, types,
        )  # fmt: skip
        found.check()
        return found


def to_stomp_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Convert property values from JSON types to STOMP text: true becomes `true`, 5 becomes `5`."""
    return {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in values.items()}


def rows_or_blank(rows: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the rows of a form, or one blank row."""
    return list(rows) or [("", KEEP_TYPE, "")]


def _parse_number(name: str, text: str, most: int) -> int | None:
    if not text:
        return None
    if not (text.isdecimal() and len(text) < 12 and int(text) <= most):
        raise RequestRefused(f"{name}: {text[:40]!r} must be a whole number from 0 to {most:,}")
    return int(text)
