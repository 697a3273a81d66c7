"""Represent a message that waits in the store until it is due. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum

from brokerapp.engine.scheduling.delivery_schedule import DeliverySchedule
from brokerapp.model.message import Message
from brokerapp.model.stored_message import load_stored

_SCHEDULE_FIELDS = tuple(each.name for each in fields(DeliverySchedule))


class JobPurpose(StrEnum):
    """Purpose of a scheduled message: a delayed send, or a delayed redelivery."""

    SEND = "send"  #: its producer wants it delivered later
    RETURN = "return"  #: it failed, and its queue gets it again


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A message with its schedule, and what to do with it when it is due."""

    purpose: JobPurpose
    to: str  #: where to: what the producer named (a list of destinations may be), or the queue's native name
    message: Message
    schedule: DeliverySchedule = field(default_factory=DeliverySchedule)
    original: str = ""  #: what its copy in the queue said, see Entry
    shown: str = ""

    def record(self) -> bytes:
        """One value of the store: a line of JSON, then the message as it is stored."""
        about = {"purpose": self.purpose, "to": self.to, "original": self.original, "shown": self.shown}
        about = {name: value for name, value in about.items() if value}
        about |= {name: value for name in _SCHEDULE_FIELDS if (value := getattr(self.schedule, name))}
        return json.dumps(about).encode() + b"\n" + self.message.stored()

    @staticmethod
    def purpose_of(record: bytes) -> JobPurpose:
        """Why the message of this record waits."""
        return JobPurpose(json.loads(record[: record.index(b"\n")])["purpose"])

    @staticmethod
    def load(record: bytes) -> ScheduledJob:
        """Load a job from its record in the store."""
        line, _, stored = record.partition(b"\n")
        about = json.loads(line)
        own = {name: about.pop(name, "") for name in ("to", "original", "shown")}
        return ScheduledJob(
            JobPurpose(about.pop("purpose")), message=load_stored(stored), schedule=DeliverySchedule(**about), **own
        )
