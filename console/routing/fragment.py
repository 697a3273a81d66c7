"""Definitions as ActiveMQ's XML, and what an imported file would change."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from brokerapp.config import export_xml
from brokerapp.definitions import Definitions, VirtualDestination, to_json
from brokerapp.errors import BrokerError

_INTERCEPTORS = re.compile(r"^ *<destinationInterceptors.*</destinationInterceptors>", re.DOTALL | re.MULTILINE)


def fragment_of(definition: VirtualDestination) -> str:
    """The part of an activemq.xml that says the same as this definition; empty when XML cannot say it."""
    try:
        found = _INTERCEPTORS.search(export_xml(Definitions(0, (definition,))))
    except BrokerError:
        return ""
    return textwrap.dedent(found[0]) if found else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a new set of definitions adds to, changes in and takes from the one in force; ids of definitions."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    kept: list[str]
    policies_differ: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return not (self.added or self.changed or self.removed or self.policies_differ)


def difference(old: Definitions, new: Definitions) -> Difference:
    """How `new` differs from `old`."""
    before = {each.id: each for each in old.virtual_destinations}
    after = {each.id: each for each in new.virtual_destinations}
    return Difference(
        added=[each for each in after if each not in before],
        changed=[each for each in after if each in before and after[each] != before[each]],
        removed=[each for each in before if each not in after],
        kept=[each for each in after if before.get(each) == after[each]],
        policies_differ=to_json(old)["policies"] != to_json(new)["policies"],
    )
