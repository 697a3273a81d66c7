"""Changes: what a draft does to the definitions, one definition at a time. Pure.

A change remembers what it was made from (`before`), so that a draft outlives what others change meanwhile: it is
applied to the definitions in force then, and only where somebody changed the very same definition it clashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from brokerapp.model.definition_codec import from_json, to_json
from brokerapp.model.definitions import (
    Definitions,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualDestination,
)

#: What can be changed by itself. A Redelivery stands for its switches alone, without the policies in it.
Item = VirtualDestination | PolicyEntry | RedeliveryPolicy | RedeliverySettings
#: Id of the switches of redelivery, which are always there.
SWITCHES = "redelivery"
#: Options of a policy that say what is recorded: whoever changes these needs a right of its own.
RECORDING = ("record_one_in", "record_properties")


def id_of(item: Item) -> str:
    """What tells this item from all others."""
    return SWITCHES if isinstance(item, RedeliverySettings) else item.id


def kind_of(item: Item) -> str:
    """The name of the element that declares it."""
    match item:
        case PolicyEntry():
            return "policyEntry"
        case RedeliveryPolicy():
            return "redeliveryPolicy"
        case RedeliverySettings():
            return "redelivery"
    return item.kind


def items_of(definitions: Definitions) -> dict[str, Item]:
    """All that can be changed by itself, by id, in order."""
    redelivery = definitions.redelivery
    every = (
        *definitions.virtual_destinations,
        *definitions.policies,
        *redelivery.policies,
        replace(redelivery, policies=()),
    )
    return {id_of(each): each for each in every}


def definitions_of(items: Iterable[Item], version: int = 0) -> Definitions:
    """The inverse of items_of."""
    virtual, policies, redeliveries, switches = [], [], [], RedeliverySettings()
    for each in items:
        match each:
            case PolicyEntry():
                policies.append(each)
            case RedeliveryPolicy():
                redeliveries.append(each)
            case RedeliverySettings():
                switches = each
            case _:
                virtual.append(each)
    redelivery = replace(switches, policies=tuple(redeliveries))
    return Definitions(version, tuple(virtual), tuple(policies), redelivery)


def item_to_json(item: Item | None) -> dict[str, Any] | None:
    """Plain values: definitions that hold nothing else."""
    return None if item is None else to_json(definitions_of([item]))


def item_from_json(data: Mapping[str, Any] | None) -> Item | None:
    """The inverse of item_to_json; raises DefinitionRefused."""
    if data is None:
        return None
    found = items_of(from_json(data))
    switches = found.pop(SWITCHES)
    return next(iter(found.values()), switches)


def _recording(item: Item | None) -> tuple:
    """What it says of recording; nothing where it is about something else."""
    return tuple(getattr(item, name, None) for name in RECORDING)


@dataclass(frozen=True, slots=True)
class Change:
    """One definition as it was and as it shall be; None where there is none."""

    before: Item | None
    after: Item | None

    @property
    def id(self) -> str:
        """Of what is changed: as it was called, or as it is called when it is new."""
        return id_of(self.before if self.before is not None else self.after)

    @property
    def what(self) -> str:
        """`new`, `changed` or `removed`."""
        return "new" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def records(self) -> bool:
        """Whether it changes what is recorded."""
        return _recording(self.before) != _recording(self.after)

    @property
    def routes(self) -> bool:
        """Whether it changes anything else. A policy that comes or goes does: it holds instead of others."""
        if not isinstance(self.before, PolicyEntry) or not isinstance(self.after, PolicyEntry):
            return True
        before, after = (replace(each, **dict.fromkeys(RECORDING)) for each in (self.before, self.after))
        return before != after

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"before": item_to_json(self.before), "after": item_to_json(self.after)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Change:
        """The inverse of to_json; raises DefinitionRefused."""
        return Change(item_from_json(data["before"]), item_from_json(data["after"]))


@dataclass(frozen=True, slots=True)
class Clash:
    """A change that cannot be made as it stands: somebody else changed what it changes, to `theirs`."""

    change: Change
    theirs: Item | None
    is_name_taken: bool = False  #: `theirs` is another definition, which has the name this one shall get


def clashes(current: Definitions, changes: Iterable[Change]) -> list[Clash]:
    """The changes that do not fit what is in force."""
    items = items_of(current)
    return [clash for each in changes if (clash := _clash(items, each)) is not None]


def _clash(items: Mapping[str, Item], change: Change) -> Clash | None:
    standing = items.get(change.id)
    if standing == change.after:  # somebody did the same already, or it is gone already
        return None
    if standing != change.before:
        return Clash(change, standing, is_name_taken=change.before is None)
    if change.after is not None and id_of(change.after) != change.id and id_of(change.after) in items:
        return Clash(change, items[id_of(change.after)], is_name_taken=True)
    return None


def applied(current: Definitions, changes: Iterable[Change]) -> Definitions:
    """The definitions with these changes, those that clash left out; what was changed keeps its place."""
    items = items_of(current)
    for change in changes:
        if _clash(items, change) is not None:
            continue
        if change.before is None or change.id not in items:
            items |= {} if change.after is None else {id_of(change.after): change.after}
            continue
        items = {
            (id if id != change.id else id_of(change.after)): (each if id != change.id else change.after)
            for id, each in items.items()
            if id != change.id or change.after is not None
        }
    return definitions_of(items.values(), current.version)


def between(old: Definitions, new: Definitions) -> list[Change]:
    """What turns one set of definitions into another, in the order of the new one, removals last."""
    before, after = items_of(old), items_of(new)
    made = [Change(before.get(id), each) for id, each in after.items() if before.get(id) != each]
    return made + [Change(each, None) for id, each in before.items() if id not in after]


def joined(changes: Iterable[Change], new: Change) -> list[Change]:
    """The changes of a draft with one more; what the draft changed before already is changed once."""
    changes = list(changes)
    earlier = next((each for each in changes if _goes_on(each, new)), None)
    whole = Change(new.before if earlier is None else earlier.before, new.after)
    rest = [each for each in changes if each is not earlier]
    return rest if whole.before == whole.after else [*rest, whole]


def _goes_on(earlier: Change, new: Change) -> bool:
    """Whether the new change is about what the earlier one made, or puts something in the place of what it removed."""
    if new.before is not None:
        return earlier.after is not None and id_of(earlier.after) == id_of(new.before)
    return earlier.after is None and new.after is not None and earlier.id == id_of(new.after)


def resolved(changes: Iterable[Change], clash: Clash, *, keep: bool) -> list[Change]:
    """The changes after a clash was decided: made from what stands now (`keep`), or given up."""
    kept = Change(clash.theirs, clash.change.after)
    mended = [kept] if keep and not clash.is_name_taken and kept.before != kept.after else []
    if keep and clash.is_name_taken:  # take the place of the one that has the name
        mended = [Change(clash.theirs, clash.change.after)]
        if clash.change.before is not None:
            mended.append(Change(clash.change.before, None))
    return [each for change in changes for each in (mended if change == clash.change else [change])]
