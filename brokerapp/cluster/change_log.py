"""Propose changes of destinations and durable subscriptions to the master of a cluster, which records them.

A change is recorded first, then it happens where it was asked for, then everywhere. Without any master in the cluster
all are told, and who is away then does not hear of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
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


class ChangeLog:
    """Records changes. `record` is the broker's copy as stored; `master` names the broker that keeps it, "": none."""

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
        self.is_master = master == context.name
        self.master: ClusterPeer | None = peers.get(master)
        self.is_current = not self.master  #: it had the master's record since it started
        self._parts: dict[str, RecordedItem] = {}  # of a record that is being told

    def begin(self) -> None:
        """Apply what this broker lacks of the record, or of its configuration, as it starts."""
        if self.is_master:
            known, own = self.record, self.record
            if not own.id:
                own = self.record = ClusterRecord(f"{self._name}-{self._session}")
                self._commits.keep_record(own.id, 0, {}, True, lambda: None)
            self._catch_up(known, own)
        elif not self.master:
            for each in self._configured:
                self._target.apply_later(each)

    # -- whether it may change

    @property
    def refusal_reason(self) -> str:
        """Return why nothing can be created or deleted now; "": it can."""
        if self.is_current and (self.master is None or self.master.is_up):
            return ""
        return (
            f"the cluster's master {self.master_name} cannot be reached. Until then, operators and subscribers "
            "cannot create or delete destinations and durable subscriptions."
        )

    def change(self, change: ClusterChange, then: OnAnswer) -> None:
        """Record a creation or deletion; `then` is called when it is recorded, or with the reason why not."""
        if self.is_master:
            self._append(change, lambda why_not, _version: then(why_not))
        elif self.master is None:
            self._broadcast(verb="change", change=change.to_json())
            then("")
        elif why := self.refusal_reason:
            then(why)
        else:
            self._request_change(self.master, change, then)

    def _request_change(self, master: ClusterPeer, change: ClusterChange, then: OnAnswer) -> None:
        """Ask the master to record a change; its answer has the new version, before all brokers are told."""

        def answered(version: str) -> None:
            record = self.record = self.record.with_confirmed_change(change, int(version))
            self._commits.keep_record(record.id, record.version, _encode_change(record, change), False, lambda: None)

        master.request(then, answered, verb="record", change=change.to_json())

    # -- the master

    def on_change_requested(self, change: ClusterChange, then: OnRecorded) -> None:
        """Record a change for another broker."""
        if not self.is_master:
            then(f"{self._name} is not the cluster's master", 0)
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
        if teller != self.master_name:
            return
        if first:
            self._parts = {}
        self._parts |= {name: RecordedItem(number, attributes) for name, number, attributes in entries}
        if last:
            masters, self._parts = self.record.merged_with_master(ClusterRecord(id, version, self._parts)), {}
            known, self.record = self.record, masters
            rows = {name: _encode_item(each) for name, each in masters.entries.items()}
            self._catch_up(known, masters)
            self._target.call_when_applied(lambda: self._commits.keep_record(id, version, rows, True, self._on_current))

    def _on_current(self) -> None:
        if not self.is_current:
            logger.info("cluster: in step with the master %s, record version %d", self.master_name, self.record.version)
        self.is_current = True

    def on_change(self, teller: str, id: str, version: int, change: ClusterChange) -> None:
        """Apply a change that the master recorded."""
        if teller != self.master_name or id != self.record.id or version <= self.record.version:
            return
        if version > self.record.version + 1:  # one was missed: it tells all of it
            self._peers[teller].send(verb="tell record")
            return
        if self.record.is_newer(change.name, version):
            self.record = replace(self.record, version=version)
            return
        record = self.record = self.record.with_recorded_change(change, version)
        self._target.apply_later(change)
        self._commits.keep_record(id, version, _encode_change(record, change), False, lambda: None)

    def _catch_up(self, known: ClusterRecord, masters: ClusterRecord) -> None:
        """Apply what the record has and this broker has not, and submit what is here and belongs into the record."""
        plan = catch_up(known, masters, self._target.existing(), self._configured)
        for each in plan.apply:
            self._target.apply_later(each)
        for each in plan.submit:
            self._submit(each)

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


def _encode_change(record: ClusterRecord, change: ClusterChange) -> dict[str, str]:
    """Return a change as the store keeps it."""
    entry = record.entries.get(change.name)
    return {change.name: "" if entry is None else _encode_item(entry)}


def _encode_item(entry: RecordedItem) -> str:
    return json.dumps([entry.version, dict(entry.attributes)], separators=(",", ":"), ensure_ascii=False)


def read_record(id: str, version: int, rows: Mapping[str, str]) -> ClusterRecord:
    """Return the record of these rows of the store."""
    return ClusterRecord(id, version, {name: RecordedItem(*json.loads(row)) for name, row in rows.items()})
