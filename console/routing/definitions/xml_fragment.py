"""Write single definitions as ActiveMQ XML, and compare two files."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass

from brokerapp.config import export_xml
from brokerapp.errors import BrokerError
from brokerapp.model.definitions import Definitions
from console.routing.definitions.changes import Definition, collect_definitions, kind_of

#: The element that contains definitions of a kind; virtual destinations have another one.
_SECTIONS = {
    "policyEntry": "destinationPolicy",
    "redeliveryPolicy": "plugins",
    "redelivery": "plugins",
}
_INTERCEPTORS = "destinationInterceptors"
#: Unchanged lines shown around a change.
CONTEXT = 3
#: Deepest indentation that has a style.
MAX_DEPTH = 8


def xml_fragment_of(item: Definition | None) -> str:
    """Write a definition as part of an activemq.xml; "" if that is not possible."""
    if item is None:
        return ""
    section = _SECTIONS.get(kind_of(item), _INTERCEPTORS)
    try:
        text = export_xml(collect_definitions([item]))
    except BrokerError:
        return ""
    found = re.search(rf"^ *<{section}\b.*</{section}>", text, re.DOTALL | re.MULTILINE)
    return textwrap.dedent(found[0]) if found else ""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff: `sign` is `+`, `-`, a blank, or `@` where lines are omitted."""

    sign: str
    text: str

    @property
    def what(self) -> str:
        """Return the kind of line: added, removed, gap or same."""
        return {"+": "added", "-": "removed", "@": "gap"}.get(self.sign, "same")

    @property
    def depth(self) -> int:
        """Return the indentation in steps of two blanks; wrapped lines have the same."""
        return min(MAX_DEPTH, (len(self.text) - len(self.text.lstrip())) // 2)


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Compare two texts, with some context; empty if they are the same."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), n=CONTEXT, lineterm="")
    lines = [each for each in found if not each.startswith(("---", "+++"))]
    return [DiffLine("@", "…") if each.startswith("@@") else DiffLine(each[:1], each[1:]) for each in lines]


def diff_files(old: Definitions, new: Definitions, broker: str) -> list[DiffLine]:
    """Compare two sets of definitions as activemq.xml files. Raises DefinitionRefused."""
    return diff_lines(export_xml(old, broker), export_xml(new, broker))


def diff_fragments(old: Definition | None, new: Definition | None) -> list[DiffLine]:
    """Compare two definitions as XML, without omitting lines."""
    before, after = xml_fragment_of(old).splitlines(), xml_fragment_of(new).splitlines()
    lines = difflib.ndiff(before, after)
    return [DiffLine(each[0], each[2:]) for each in lines if each[0] != "?"]
