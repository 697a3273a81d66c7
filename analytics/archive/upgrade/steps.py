"""The table of upgrades of archives, and the state of each archive of an installation."""

from __future__ import annotations

import os
from dataclasses import dataclass

from analytics.archive.archiver import FAULT_VARIABLE, fault_injector
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.format_file import FORMATS, read_format
from analytics.archive.upgrade.rewriting import outdated_hours, rewrite_archive
from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import Environment
from brokerapp.upgrades.plan import FormatStep, PartState, PlannedStep, Report, plan_steps


@dataclass(frozen=True, slots=True)
class UpgradedArchive:
    """An archive that is upgraded, and the properties that its index has."""

    archive: BrokerArchive
    indexed: tuple[str, ...]


def _rewrite(target: UpgradedArchive, report: Report) -> None:
    at = fault_injector(os.environ.get(FAULT_VARIABLE, ""))
    rewrite_archive(target.archive, target.indexed, report, at)


#: How archives get from one format to the next.
ARCHIVE_STEPS: tuple[FormatStep[UpgradedArchive], ...] = (
    FormatStep(1, 2, "rewrite files of earlier versions", _rewrite),
)


def archive_states(environment: Environment) -> list[PartState]:
    """Return the state of the archive of each broker in the data folder."""
    archives = sorted(BrokerArchive.archives_in(environment.archive), key=lambda each: each.broker)
    return [_state(UpgradedArchive(each, environment.indexed)) for each in archives]


def _state(target: UpgradedArchive) -> PartState:
    name = f"archive of broker {target.archive.broker}"
    try:
        found = read_format(target.archive.folder)
        planned = plan_steps(FORMATS, found, ARCHIVE_STEPS)
    except ConfigurationRefused as refused:
        return PartState(name, "another format", str(FORMATS), refusal=f"{name}: {refused}")
    steps = tuple(_planned(name, each, target) for each in planned)
    return PartState(name, f"format {found}", str(FORMATS), steps)


def _planned(name: str, step: FormatStep[UpgradedArchive], target: UpgradedArchive) -> PlannedStep:
    hours = len(outdated_hours(target.archive.folder))
    does = f"{step.does} ({hours:,} hours)" if hours else "record the format, as no file is of an earlier version"
    summary = f"{name}, format {step.source} to {step.target}: {does}"
    return PlannedStep(summary, lambda report: step.run(target, report))
