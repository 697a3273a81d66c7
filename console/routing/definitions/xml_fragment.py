"""Definitions as ActiveMQ's XML: the part of a file that says one of them, and what changes between two files."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass

from brokerapp.config import export_xml
from brokerapp.errors import BrokerError
from brokerapp.model.definitions import Definitions
from console.routing.definitions.changes import Definition, collect_definitions, kind_of

#: The element of a file that declares items of a kind; virtual destinations have theirs.
_SECTIONS = {
    "policyEntry": "destinationPolicy",
    "redeliveryPolicy": "plugins",
    "redelivery": "plugins",
}
_INTERCEPTORS = "destinationInterceptors"
#: Unchanged lines around a change that are shown.
CONTEXT = 3
#: Deepest step of indentation that has a style.
MAX_DEPTH = 8


def xml_fragment_of(item: Definition | None) -> str:
    """The part of an activemq.xml that says the same as this definition; empty when XML cannot say it."""
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
    """One line of a difference: `sign` is `+`, `-`, a blank, or `@` where lines are left out."""

    sign: str
    text: str

    @property
    def what(self) -> str:
        """For style and for those who do not see colours."""
        return {"+": "added", "-": "removed", "@": "gap"}.get(self.sign, "same")

    @property
    def depth(self) -> int:
        """How deep it is indented, in steps of two blanks: so far what does not fit a line is indented, too."""
        return min(MAX_DEPTH, (len(self.text) - len(self.text.lstrip())) // 2)


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """What changes from one text to the other, with some lines around it; nothing when they are the same."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), n=CONTEXT, lineterm="")
    lines = [each for each in found if not each.startswith(("---", "+++"))]
    return [DiffLine("@", "…") if each.startswith("@@") else DiffLine(each[:1], each[1:]) for each in lines]


def diff_files(old: Definitions, new: Definitions, broker: str) -> list[DiffLine]:
    """What changes in the activemq.xml that an administrator of ActiveMQ knows. Raises DefinitionRefused."""
    return diff_lines(export_xml(old, broker), export_xml(new, broker))


def diff_fragments(old: Definition | None, new: Definition | None) -> list[DiffLine]:
    """The same of one definition alone, whole."""
    before, after = xml_fragment_of(old).splitlines(), xml_fragment_of(new).splitlines()
    lines = difflib.ndiff(before, after)
    return [DiffLine(each[0], each[2:]) for each in lines if each[0] != "?"]
