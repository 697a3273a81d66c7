"""An edit as somebody writes it: in a form, or as JSON for the API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.engine.editing.message_edit import MAX_LIFE, MAX_PRIORITY, MessageEdit, body_of
from brokerapp.engine.editing.message_properties import check_name, typed
from brokerapp.errors import RequestRefused

#: What a form says in the place of a type when a property is to go, and in the place of an encoding when a body stays.
REMOVED, KEPT = "remove", "keep"
#: What a form says of persistence.
PERSISTENCE = {"": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Changes:
    """What the form holds, as text."""

    rows: tuple[tuple[str, str, str], ...] = ()  #: name, type or `remove`, value
    persistent: str = ""
    priority: str = ""
    lives: str = ""  #: seconds
    encoding: str = KEPT
    body: str = ""
    keeps: bool = False

    @staticmethod
    def read(form: Any) -> Changes:
        """What was given."""
        names, types, values = (form.getlist(f"property-{part}") for part in ("name", "type", "value"))
        rows = zip(names, types, values, strict=False)
        return Changes(
            tuple((name.strip(), kind, value) for name, kind, value in rows if name.strip() or value),
            form.get("persistent", ""), form.get("priority", "").strip(), form.get("lives", "").strip(),
            form.get("encoding", KEPT), form.get("body", "").replace("\r\n", "\n"), form.get("keeps") == "true",
        )  # fmt: skip

    def edit(self) -> MessageEdit:
        """The edit it describes. Raises RequestRefused that names the field and the rule."""
        values: dict[str, str] = {}
        removed: list[str] = []
        for name, kind, value in self.rows:
            check_name(name)
            if name in values or name in removed:
                raise RequestRefused(f"{name!r} is given twice")
            if kind == REMOVED:
                removed.append(name)
            else:
                values[name] = typed(name, kind, value)
        if self.persistent not in PERSISTENCE:
            raise RequestRefused(f"persistent: {self.persistent!r} is neither true nor false")
        found = MessageEdit(
            values, tuple(removed), PERSISTENCE[self.persistent],
            _number("priority", self.priority, MAX_PRIORITY), _number("lives", self.lives, MAX_LIFE),
            None if self.encoding == KEPT else body_of(self.body, self.encoding), self.encoding == "base64",
            self.keeps,
        )  # fmt: skip
        found.check()
        return found


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of properties as JSON types them, as STOMP has them: true is `true`, 5 is `5`."""
    return {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in values.items()}


def shown_rows(rows: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The rows of a form, with an empty one to begin with."""
    return list(rows) or [("", "text", "")]


def _number(name: str, text: str, most: int) -> int | None:
    if not text:
        return None
    if not (text.isdecimal() and len(text) < 12 and int(text) <= most):
        raise RequestRefused(f"{name}: {text[:40]!r} is no whole number from 0 to {most:,}")
    return int(text)
