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

from brokerapp.cluster.peer import ClusterPeer, Then
from brokerapp.cluster.record import ClusterChange, ClusterRecord, RecordedItem, catch_up
from brokerapp.core.ports import BrokerContext
from brokerapp.errors import RequestRefused

logger = logging.getLogger(__name__)


#: What comes of a change: "" and the version of the record that has it, or the reason why none has.
OnRecorded = Callable[[str, int], None]


class ChangeTarget(Protocol):
    """Does here what the record says, change by change."""

    def soon(self, change: ClusterChange) -> None:
        """Do this when all before it is done."""

    def when_done(self, then: Callable[[], None]) -> None:
        """Be told when all asked so far is done."""

    def held(self) -> list[ClusterChange]:
        """What is here that a record is about."""


class ChangeLog:
    """`record` is the broker's copy as it was stored; `master` the peer that keeps it, None on the master itself."""

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
        """The broker starts."""
        if self.is_master:
            known, own = self.record, self.record
            if not own.id:
                own = self.record = ClusterRecord(f"{self._name}-{self._session}")
                self._commits.keep_record(own.id, 0, {}, True, lambda: None)
            self._catch_up(known, own)
        elif not self.master:
            for each in self._configured:
                self._target.soon(each)

    # -- whether it may change

    @property
    def why_not(self) -> str:
        """Why nothing can be created or deleted now; "": it can."""
        if self.is_current and (self.master is None or self.master.is_up):
            return ""
        return (
            f"the cluster's master {self.master_name} cannot be reached. Until then, operators and subscribers "
            "cannot create or delete destinations and durable subscriptions."
        )

    def change(self, change: ClusterChange, then: Then) -> None:
        """Something is to be made or deleted: `then` is told when it is recorded, or why it is not to be."""
        if self.is_master:
            self._append(change, lambda why_not, _version: then(why_not))
        elif self.master is None:
            self._broadcast(verb="change", change=change.to_json())
            then("")
        elif why := self.why_not:
            then(why)
        else:
            self._request_change(self.master, change, then)

    def _request_change(self, master: ClusterPeer, change: ClusterChange, then: Then) -> None:
        """Its answer says which version it made: that is known before the master tells all."""

        def answered(version: str) -> None:
            record = self.record = self.record.noted(change, int(version))
            self._commits.keep_record(record.id, record.version, _encode_change(record, change), False, lambda: None)

        master.ask(then, answered, verb="record", change=change.to_json())

    # -- the master

    def asked(self, change: ClusterChange, then: OnRecorded) -> None:
        """Another broker wants a change."""
        if not self.is_master:
            then(f"{self._name} is not the cluster's master", 0)
            return

        def recorded(why_not: str, version: int) -> None:
            if not why_not:
                self._target.soon(change)
            then(why_not, version)

        self._append(change, recorded)

    def _append(self, change: ClusterChange, then: OnRecorded) -> None:
        """Changes come one after the other: the next one finds what this one left."""
        if change.subscription is not None and self.record.holds(change):
            then("", self.record.version_of(change))
            return
        try:
            record = self.record = self.record.changed(change)
        except RequestRefused as why:
            then(str(why), 0)
            return

        def stored() -> None:
            self._broadcast(verb="recorded", id=record.id, version=record.version, change=change.to_json())
            then("", record.version)

        self._commits.keep_record(record.id, record.version, _encode_change(record, change), False, stored)

    def introduce(self, peer: ClusterPeer) -> None:
        """Tell a broker that is there again the whole record."""
        if not self.is_master:
            return
        entries = [[name, each.version, each.attributes] for name, each in self.record.entries.items()]
        peer.send_entries("record is", entries, id=self.record.id, version=self.record.version)

    def _broadcast(self, **document: Any) -> None:
        for peer in self._peers.values():
            peer.tell(**document)

    # -- the others

    def on_record(self, teller: str, id: str, version: int, entries: Iterable[Any], first: bool, last: bool) -> None:
        """The master tells its record, part by part; it may have broken off before."""
        if teller != self.master_name:
            return
        if first:
            self._parts = {}
        self._parts |= {name: RecordedItem(number, attributes) for name, number, attributes in entries}
        if last:
            masters, self._parts = self.record.told(ClusterRecord(id, version, self._parts)), {}
            known, self.record = self.record, masters
            rows = {name: _encode_item(each) for name, each in masters.entries.items()}
            self._catch_up(known, masters)
            self._target.when_done(lambda: self._commits.keep_record(id, version, rows, True, self._on_current))

    def _on_current(self) -> None:
        if not self.is_current:
            logger.info("cluster: in step with the master %s, record version %d", self.master_name, self.record.version)
        self.is_current = True

    def on_change(self, teller: str, id: str, version: int, change: ClusterChange) -> None:
        """The master recorded a change."""
        if teller != self.master_name or id != self.record.id or version <= self.record.version:
            return
        if version > self.record.version + 1:  # one was missed: it tells all of it
            self._peers[teller].tell(verb="tell record")
            return
        if self.record.is_newer(change.name, version):
            self.record = replace(self.record, version=version)
            return
        record = self.record = self.record.applied(change, version)
        self._target.soon(change)
        self._commits.keep_record(id, version, _encode_change(record, change), False, lambda: None)

    def _catch_up(self, known: ClusterRecord, masters: ClusterRecord) -> None:
        """Be as the record says, and let it say what is here, where that is to be."""
        plan = catch_up(known, masters, self._target.held(), self._configured)
        for each in plan.apply:
            self._target.soon(each)
        for each in plan.submit:
            self._submit(each)

    def _submit(self, change: ClusterChange) -> None:
        def done(why_not: str) -> None:
            if why_not:
                logger.warning("cluster: %s is not in the record: %s", change.name, why_not)
            else:
                self._target.soon(change)

        if self.is_master:
            self._append(change, lambda why_not, _version: done(why_not))
        elif self.master is not None:
            self._request_change(self.master, change, done)


def _encode_change(record: ClusterRecord, change: ClusterChange) -> dict[str, str]:
    """What the store keeps of a change."""
    entry = record.entries.get(change.name)
    return {change.name: "" if entry is None else _encode_item(entry)}


def _encode_item(entry: RecordedItem) -> str:
    return json.dumps([entry.version, dict(entry.attributes)], separators=(",", ":"), ensure_ascii=False)


def read_record(id: str, version: int, rows: Mapping[str, str]) -> ClusterRecord:
    """A record as the store keeps it."""
    return ClusterRecord(id, version, {name: RecordedItem(*json.loads(row)) for name, row in rows.items()})
