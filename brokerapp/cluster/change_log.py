"""Propose changes of destinations and durable subscriptions to the master of a cluster, which records them.

A change is recorded first, then it happens where it was asked for, then everywhere. Without any master in the cluster
all are told, and who is away then does not hear of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from brokerapp.cluster.peer import ClusterPeer, OnAnswer
from brokerapp.cluster.record import ClusterChange, ClusterRecord, RecordedItem, catch_up
from brokerapp.core.ports import BrokerContext
from brokerapp.errors import RequestRefused

logger = logging.getLogger(__name__)


#: What comes of a change: "" and the version of the record that has it, or the reason why none has.
OnRecorded = Callable[[str, int], None]


class ChangeTarget(Protocol):
    """Applies the changes of the record at this broker, one after the other."""

    def apply_later(self, change: ClusterChange) -> None:
        """Apply this when all changes before it are applied."""

    def call_when_applied(self, then: Callable[[], None]) -> None:
        """Call this when all changes so far are applied."""

    def existing(self) -> list[ClusterChange]:
        """Return what exists here of the kinds that a record is about."""

    def concerns(self, change: ClusterChange) -> bool:
        """Return whether this node makes the change for its broker."""

    @property
    def is_shared(self) -> bool:
        """Return whether the broker has other nodes."""


class ChangeLog:
    """Records changes. `record` is the broker's copy as stored; `master` names the broker that keeps it, "": none.

    Of the nodes of a broker one, chosen by RecordLeader, stores the record; at the master it decides what is recorded.
    """

    def __init__(
        self,
        *,
        context: BrokerContext,
        master: str,
        peers: Mapping[str, ClusterPeer],
        record: ClusterRecord,
        configured: Iterable[ClusterChange],
        target: ChangeTarget,
    ) -> None:
        self._name, self._session, self._commits = context.name, context.session, context.commits
        self._peers, self._target = peers, target
        self._configured = tuple(configured)
        self.record, self.master_name = record, master
        self.leads = False  #: this node stores the record for its broker
        masters = [each for each in peers.values() if each.broker == master]
        #: The node of the master that records: the one that sent its record last.
        self.master: ClusterPeer | None = masters[0] if len(masters) == 1 and master != context.name else None
        self.is_current = not master  #: it had the master's record since it started
        self._doubted: frozenset[str] = frozenset()  # what exists here and was not in the record when it came last
        self._parts: dict[str, RecordedItem] = {}  # of a record that is being told

    def begin(self) -> None:
        """Apply what this broker lacks of its configuration, as it starts; with a master it is the record that says."""
        if not self.master_name:
            for each in self._configured:
                self._target.apply_later(each)

    def lead(self, stored: ClusterRecord) -> None:
        """Store the record for the broker from now on; at the master, record changes from what is stored."""
        self.leads = True
        if self.master_name != self._name:
            if self.is_current and self.master_name:
                self._store_all(lambda: None)
            return
        self.record, self.master, self.is_current = stored, None, True
        if not stored.id:
            self.record = ClusterRecord(f"{self._name}-{self._session}")
            self._commits.keep_record(self.record.id, 0, {}, True, lambda: None)
        self._catch_up(stored, self.record)
        for peer in self._peers.values():
            self.send_record(peer)

    @property
    def is_master(self) -> bool:
        """Return whether this node decides what is recorded."""
        return self.leads and self.master_name == self._name

    def check(self) -> None:
        """Compare with the master's record again: this node may have to make what another one has left undone."""
        if self.is_master:
            self._catch_up(self.record, self.record)
        elif self.master is not None:
            self.master.send(verb="tell record")

    # -- whether it may change

    @property
    def refusal_reason(self) -> str:
        """Return why nothing can be created or deleted now; "": it can."""
        if self.is_current and (not self.master_name or self.is_master or self._is_master_up):
            return ""
        return (
            f"the cluster's master {self.master_name} cannot be reached. Until then, operators and subscribers "
            "cannot create or delete destinations and durable subscriptions."
        )

    @property
    def _is_master_up(self) -> bool:
        return self.master is not None and self.master.is_up

    def change(self, change: ClusterChange, then: OnAnswer) -> None:
        """Record a creation or deletion; `then` is called when it is recorded, or with the reason why not."""
        if self.is_master:
            self._append(change, lambda why_not, _version: then(why_not))
        elif not self.master_name:
            for peer in self._peers.values():
                if peer.broker != self._name:
                    peer.send(verb="change", change=change.to_json())
            then("")
        elif (why := self.refusal_reason) or self.master is None:
            then(why)
        else:
            self._request_change(self.master, change, then)

    def _request_change(self, master: ClusterPeer, change: ClusterChange, then: OnAnswer) -> None:
        """Ask the master to record a change; its answer has the new version, before all brokers are told."""

        def answered(version: str) -> None:
            record = self.record = self.record.with_confirmed_change(change, int(version))
            self._store(record, change)

        master.request(then, answered, verb="record", change=change.to_json())

    # -- the master

    def on_change_requested(self, change: ClusterChange, then: OnRecorded) -> None:
        """Record a change for another broker."""
        if not self.is_master:
            then(f"this node of {self._name} is not the one that keeps the cluster's record", 0)
            return

        def recorded(why_not: str, version: int) -> None:
            if not why_not:
                self._target.apply_later(change)
            then(why_not, version)

        self._append(change, recorded)

    def _append(self, change: ClusterChange, then: OnRecorded) -> None:
        """Append a change to the record; the next one finds what this one left."""
        if change.subscription is not None and self.record.holds(change):
            then("", self.record.version_of(change))
            return
        try:
            record = self.record = self.record.with_change(change)
        except RequestRefused as why:
            then(str(why), 0)
            return

        def stored() -> None:
            self._broadcast(verb="recorded", id=record.id, version=record.version, change=change.to_json())
            then("", record.version)

        self._commits.keep_record(record.id, record.version, _encode_change(record, change), False, stored)

    def send_record(self, peer: ClusterPeer) -> None:
        """Send the whole record to a broker whose link works again."""
        if not self.is_master:
            return
        entries = [[name, each.version, each.attributes] for name, each in self.record.entries.items()]
        peer.send_entries("record is", entries, id=self.record.id, version=self.record.version)

    def _broadcast(self, **document: Any) -> None:
        for peer in self._peers.values():
            peer.send(**document)

    # -- the others

    def on_record_part(
        self, teller: str, id: str, version: int, entries: Iterable[Any], first: bool, last: bool
    ) -> None:
        """Take a part of the master's record; an earlier list may have been broken off."""
        if self.is_master or teller not in self._peers or self._peers[teller].broker != self.master_name:
            return
        if first:
            self._parts = {}
        self._parts |= {name: RecordedItem(number, attributes) for name, number, attributes in entries}
        if last:
            self.master = self._peers[teller]
            masters, self._parts = self.record.merged_with_master(ClusterRecord(id, version, self._parts)), {}
            known, self.record = self.record, masters
            self._catch_up(known, masters)
            self._target.call_when_applied(lambda: self._store_all(self._on_current))

    def _on_current(self) -> None:
        if not self.is_current:
            logger.info("cluster: in step with the master %s, record version %d", self.master_name, self.record.version)
        self.is_current = True

    def on_change(self, teller: str, id: str, version: int, change: ClusterChange) -> None:
        """Apply a change that the master recorded."""
        is_masters = self.master is not None and teller == self.master.name
        if not is_masters or id != self.record.id or version <= self.record.version:
            return
        if version > self.record.version + 1:  # one was missed: it tells all of it
            self._peers[teller].send(verb="tell record")
            return
        if self.record.is_newer(change.name, version):
            self.record = replace(self.record, version=version)
            return
        record = self.record = self.record.with_recorded_change(change, version)
        self._target.apply_later(change)
        self._store(record, change)

    def _store(self, record: ClusterRecord, change: ClusterChange) -> None:
        """Store a change of the copy, if this node does so for its broker."""
        if self.leads and self.master_name != self._name:
            self._commits.keep_record(record.id, record.version, _encode_change(record, change), False, lambda: None)

    def _store_all(self, then: Callable[[], None]) -> None:
        """Store the whole copy, if this node does so for its broker."""
        record = self.record
        if not self.leads or self.master_name == self._name:
            then()
            return
        rows = {name: _encode_item(each) for name, each in record.entries.items()}
        self._commits.keep_record(record.id, record.version, rows, True, then)

    def _catch_up(self, known: ClusterRecord, masters: ClusterRecord) -> None:
        """Apply what the record has and this broker has not, and submit what is here and belongs into the record."""
        plan = catch_up(known, masters, self._target.existing(), self._configured, was_away=not self._target.is_shared)
        deleted = frozenset(each.name for each in plan.apply if not each.exists)
        for each in plan.apply:
            if each.exists or self._is_certain(each):
                self._target.apply_later(each)
        is_doubtful = bool(deleted - self._doubted) and self._target.is_shared and not self.is_master
        self._doubted = deleted
        if is_doubtful and self.master is not None:
            self.master.send(verb="tell record")
        for each in plan.submit:
            if self._target.concerns(each):
                self._submit(each)

    def _is_certain(self, deletion: ClusterChange) -> bool:
        """Return whether something that exists here is in the record no more.

        Another node may have had it recorded and made it while the record was on its way here. One that was asked for
        when it was known here has it.
        """
        return self.is_master or not self._target.is_shared or deletion.name in self._doubted

    def _submit(self, change: ClusterChange) -> None:
        def done(why_not: str) -> None:
            if why_not:
                logger.warning("cluster: %s is not in the record: %s", change.name, why_not)
            else:
                self._target.apply_later(change)

        if self.is_master:
            self._append(change, lambda why_not, _version: done(why_not))
        elif self.master is not None:
            self._request_change(self.master, change, done)


class RecordLeader:
    """Has the record stored by the node of the broker that joined first, and compared when the members change."""

    def __init__(
        self, recording: ChangeLog, is_eldest: Callable[[], bool], read: Callable[[], Awaitable[ClusterRecord]]
    ) -> None:
        self._recording, self._is_eldest, self._read = recording, is_eldest, read

    async def refresh(self) -> None:
        """Take the place of a node that is gone, where this one is next. Raises StoreUnavailable."""
        if self._is_eldest() and not self._recording.leads:
            self._recording.lead(await self._read())
        else:
            self._recording.check()


def _encode_change(record: ClusterRecord, change: ClusterChange) -> dict[str, str]:
    """Return a change as the store keeps it."""
    entry = record.entries.get(change.name)
    return {change.name: "" if entry is None else _encode_item(entry)}


def _encode_item(entry: RecordedItem) -> str:
    return json.dumps([entry.version, dict(entry.attributes)], separators=(",", ":"), ensure_ascii=False)


def read_record(id: str, version: int, rows: Mapping[str, str]) -> ClusterRecord:
    """Return the record of these rows of the store."""
    return ClusterRecord(id, version, {name: RecordedItem(*json.loads(row)) for name, row in rows.items()})
