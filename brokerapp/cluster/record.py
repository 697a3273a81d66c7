"""Define the record of a cluster: destinations and durable subscriptions, copied from the master to each broker. Pure.

It says what exists, not what happened: a broker that was away compares its copy with the master's, and so learns what
was made and what was deleted meanwhile. Its id tells it from the record of a master that began anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity

#: What the names of durable subscriptions begin with in a record; those of destinations are their native form.
_DURABLE = "durable:"


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """Something is made, or deleted. Of a durable subscription the attributes say what it keeps."""

    name: str
    exists: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of_destination(destination: Destination, exists: bool = True) -> ClusterChange:
        """An operator makes or deletes a destination."""
        return ClusterChange(str(destination), exists)

    @staticmethod
    def of_subscription(subscription: SubscriptionIdentity, exists: bool = True) -> ClusterChange:
        """Return the change that creates or deletes a durable subscription."""
        name = f"{_DURABLE}{quote(subscription.client_id, safe='')}:{quote(subscription.name, safe='')}"
        return ClusterChange(name, exists, subscription.attributes())

    @property
    def subscription(self) -> SubscriptionIdentity | None:
        """Return the durable subscription that changes; None for a change of a destination."""
        return SubscriptionIdentity.from_attributes(self.attributes) if self.name.startswith(_DURABLE) else None

    @property
    def destination(self) -> Destination:
        """Return the destination that changes."""
        return Destination.parse(self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        return {"name": self.name, "exists": self.exists, "attributes": dict(self.attributes)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ClusterChange:
        """Build the object from the result of to_json."""
        return ClusterChange(str(data["name"]), bool(data["exists"]), dict(data["attributes"]))


@dataclass(frozen=True, slots=True)
class RecordedItem:
    """Something that exists, and the version of the record that made it."""

    version: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The destinations and durable subscriptions of a cluster. `version` counts the changes."""

    id: str = ""  #: "": there was none so far
    version: int = 0
    entries: Mapping[str, RecordedItem] = field(default_factory=dict)

    def with_change(self, change: ClusterChange) -> ClusterRecord:
        """Return the record after a change. Raises RequestRefused when there is nothing to change."""
        found = self.entries.get(change.name)
        if change.exists and found is not None and change.subscription is None:
            raise RequestRefused(f"{change.name} exists already: an operator created it, on this broker or another one")
        if not change.exists and found is None:
            raise RequestRefused(f"{change.name} is not in the cluster's record: it was deleted already")
        return self.with_recorded_change(change, self.version + 1)

    def with_recorded_change(self, change: ClusterChange, version: int) -> ClusterRecord:
        """Return the record after a change that the master recorded as this version."""
        entries = dict(self.entries)
        if change.exists:
            entries[change.name] = RecordedItem(version, change.attributes)
        else:
            entries.pop(change.name, None)
        return ClusterRecord(self.id, version, entries)

    def version_of(self, change: ClusterChange) -> int:
        """Return the version that made what a change is about, or this one when it is gone."""
        found = self.entries.get(change.name)
        return self.version if found is None else found.version

    def with_confirmed_change(self, change: ClusterChange, version: int) -> ClusterRecord:
        """Return the record with a change of a later version, though earlier ones are not known yet."""
        return replace(self.with_recorded_change(change, version), version=self.version)

    def is_newer(self, name: str, version: int) -> bool:
        """Return whether the record has a newer version of this than that one."""
        found = self.entries.get(name)
        return found is not None and found.version > version

    def merged_with_master(self, masters: ClusterRecord) -> ClusterRecord:
        """Return the master's record, merged with later changes that are known here."""
        if self.id != masters.id:
            return masters
        later = {name: each for name, each in self.entries.items() if each.version > masters.version}
        return replace(masters, entries={**masters.entries, **later})

    def holds(self, change: ClusterChange) -> bool:
        """Return whether the record has this change already."""
        found = self.entries.get(change.name)
        if not change.exists or found is None:
            return change.exists is (found is not None)
        wanted = change.subscription
        return wanted is None or wanted.has_same_contents(SubscriptionIdentity.from_attributes(found.attributes))


@dataclass(frozen=True, slots=True)
class CatchUp:
    """What a broker has to do to agree with the master's record."""

    apply: tuple[ClusterChange, ...]  #: here, in order
    submit: tuple[ClusterChange, ...]  #: to the record


def catch_up(
    mine: ClusterRecord, masters: ClusterRecord, held: Iterable[ClusterChange], configured: Iterable[ClusterChange],
    *, was_away: bool = True,
) -> CatchUp:  # fmt: skip
    """Compute what a broker has to do, from its copy, the master's record, what it holds, and its configuration.

    What it holds and the record does not was deleted while it was away, unless it knows another record, or none: then
    it joins this one with what it has, and nothing of it is lost. `was_away` is False where other nodes of the broker
    may have made what its copy does not know.
    """
    named, holds = {each.name: each for each in configured}, {each.name: each for each in held}
    is_new = mine.id != masters.id
    deleted, made = [], []
    for name, each in holds.items():
        if name not in masters.entries and name not in named and not is_new:
            deleted.append(ClusterChange(name, False, each.attributes))
    for name, entry in masters.entries.items():
        made_anew = was_away and not is_new and name in mine.entries and mine.entries[name].version != entry.version
        if name in holds and made_anew:  # deleted and made again: what it held is of the one before
            deleted.append(ClusterChange(name, False, holds[name].attributes))
        if name not in holds or made_anew:
            made.append(ClusterChange(name, True, entry.attributes))
    own = {**named, **(holds if is_new else {})}
    return CatchUp((*deleted, *made), tuple(each for name, each in own.items() if name not in masters.entries))
