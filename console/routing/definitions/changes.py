"""Changes of single definitions: compare, merge, apply, and find conflicts. Pure.

A change stores the definition that it was derived from (`before`). Thus a draft can be applied after others have
changed the definitions; only a change of the same definition is a conflict.
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

#: A definition that can be changed by itself. Here redelivery settings do not include their policies.
Definition = VirtualDestination | PolicyEntry | RedeliveryPolicy | RedeliverySettings
#: Id of the redelivery settings, which always exist.
REDELIVERY_SETTINGS_ID = "redelivery"
#: Options of a policy that control trace recording: changing these requires a separate permission.
RECORDING_OPTIONS = ("record_one_in", "record_properties")


def id_of(item: Definition) -> str:
    """Return the unique id of a definition."""
    return REDELIVERY_SETTINGS_ID if isinstance(item, RedeliverySettings) else item.id


def kind_of(item: Definition) -> str:
    """Return the XML element that declares a definition."""
    match item:
        case PolicyEntry():
            return "policyEntry"
        case RedeliveryPolicy():
            return "redeliveryPolicy"
        case RedeliverySettings():
            return "redelivery"
    return item.kind


def definitions_by_id(definitions: Definitions) -> dict[str, Definition]:
    """Map ids to definitions, in order."""
    redelivery = definitions.redelivery
    every = (
        *definitions.virtual_destinations,
        *definitions.policies,
        *redelivery.policies,
        replace(redelivery, policies=()),
    )
    return {id_of(each): each for each in every}


def collect_definitions(items: Iterable[Definition], version: int = 0) -> Definitions:
    """Collect single definitions; the inverse of definitions_by_id."""
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


def definition_to_json(item: Definition | None) -> dict[str, Any] | None:
    """Write a definition as definitions that contain nothing else."""
    return None if item is None else to_json(collect_definitions([item]))


def definition_from_json(data: Mapping[str, Any] | None) -> Definition | None:
    """Read a definition; the inverse of definition_to_json. Raises DefinitionRefused."""
    if data is None:
        return None
    found = definitions_by_id(from_json(data))
    switches = found.pop(REDELIVERY_SETTINGS_ID)
    return next(iter(found.values()), switches)


def _recording_values(item: Definition | None) -> tuple:
    """Return the recording options of a policy; None for each in other definitions."""
    return tuple(getattr(item, name, None) for name in RECORDING_OPTIONS)


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A definition before and after a change; None where there is none."""

    before: Definition | None
    after: Definition | None

    @property
    def id(self) -> str:
        """Return the id before the change, or of a new definition."""
        return id_of(self.before if self.before is not None else self.after)

    @property
    def what(self) -> str:
        """Return the kind of change: `new`, `changed` or `removed`."""
        return "new" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def changes_recording(self) -> bool:
        """Return whether it changes trace recording."""
        return _recording_values(self.before) != _recording_values(self.after)

    @property
    def changes_routing(self) -> bool:
        """Return whether it changes anything but recording. New and removed policies do: others apply instead."""
        if not isinstance(self.before, PolicyEntry) or not isinstance(self.after, PolicyEntry):
            return True
        before, after = (replace(each, **dict.fromkeys(RECORDING_OPTIONS)) for each in (self.before, self.after))
        return before != after

    def to_json(self) -> dict[str, Any]:
        """Write a change as plain values."""
        return {"before": definition_to_json(self.before), "after": definition_to_json(self.after)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> DefinitionChange:
        """Read a change; the inverse of to_json. Raises DefinitionRefused."""
        return DefinitionChange(definition_from_json(data["before"]), definition_from_json(data["after"]))


@dataclass(frozen=True, slots=True)
class ChangeConflict:
    """A change of a definition that another user has changed to `theirs`."""

    change: DefinitionChange
    theirs: Definition | None
    is_name_taken: bool = False  #: `theirs` is another definition with the new name


def find_conflicts(current: Definitions, changes: Iterable[DefinitionChange]) -> list[ChangeConflict]:
    """Find the changes that conflict with the active definitions."""
    items = definitions_by_id(current)
    return [clash for each in changes if (clash := _conflict_of(items, each)) is not None]


def _conflict_of(items: Mapping[str, Definition], change: DefinitionChange) -> ChangeConflict | None:
    standing = items.get(change.id)
    if standing == change.after:  # the same change, or deletion, was made already
        return None
    if standing != change.before:
        return ChangeConflict(change, standing, is_name_taken=change.before is None)
    if change.after is not None and id_of(change.after) != change.id and id_of(change.after) in items:
        return ChangeConflict(change, items[id_of(change.after)], is_name_taken=True)
    return None


def apply_changes(current: Definitions, changes: Iterable[DefinitionChange]) -> Definitions:
    """Return the definitions with these changes, except those in conflict; changed definitions keep their position."""
    items = definitions_by_id(current)
    for change in changes:
        if _conflict_of(items, change) is not None:
            continue
        if change.before is None or change.id not in items:
            items |= {} if change.after is None else {id_of(change.after): change.after}
            continue
        items = {
            (id if id != change.id else id_of(change.after)): (each if id != change.id else change.after)
            for id, each in items.items()
            if id != change.id or change.after is not None
        }
    return collect_definitions(items.values(), current.version)


def diff_definitions(old: Definitions, new: Definitions) -> list[DefinitionChange]:
    """Return the changes from one set of definitions to another, in the order of the new one, removals last."""
    before, after = definitions_by_id(old), definitions_by_id(new)
    made = [DefinitionChange(before.get(id), each) for id, each in after.items() if before.get(id) != each]
    return made + [DefinitionChange(each, None) for id, each in before.items() if id not in after]


def merge_change(changes: Iterable[DefinitionChange], new: DefinitionChange) -> list[DefinitionChange]:
    """Add a change to those of a draft; two changes of one definition become one."""
    changes = list(changes)
    earlier = next((each for each in changes if _continues(each, new)), None)
    whole = DefinitionChange(new.before if earlier is None else earlier.before, new.after)
    rest = [each for each in changes if each is not earlier]
    return rest if whole.before == whole.after else [*rest, whole]


def _continues(earlier: DefinitionChange, new: DefinitionChange) -> bool:
    """Return whether the new change changes the result of the earlier one, or replaces what it removed."""
    if new.before is not None:
        return earlier.after is not None and id_of(earlier.after) == id_of(new.before)
    return earlier.after is None and new.after is not None and earlier.id == id_of(new.after)


def resolve_conflict(
    changes: Iterable[DefinitionChange], clash: ChangeConflict, *, keep: bool
) -> list[DefinitionChange]:
    """Resolve a conflict: base the change on the active definition (`keep`), or drop it."""
    kept = DefinitionChange(clash.theirs, clash.change.after)
    mended = [kept] if keep and not clash.is_name_taken and kept.before != kept.after else []
    if keep and clash.is_name_taken:  # replace the definition that has the name
        mended = [DefinitionChange(clash.theirs, clash.change.after)]
        if clash.change.before is not None:
            mended.append(DefinitionChange(clash.change.before, None))
    return [each for change in changes for each in (mended if change == clash.change else [change])]
