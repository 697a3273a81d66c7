"""Describe what an upgrade has to do: the state of each thing that is stored, and the steps from format to format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from brokerapp.errors import BrokerError, ConfigurationRefused
from brokerapp.system.formats import SupportedFormats

Thing = TypeVar("Thing")
#: Takes a line about the progress of a step.
Report = Callable[[str], None]


class UpgradeFailed(BrokerError):
    """The upgrade was not run, or not to its end."""

    code = "upgrade-failed"


@dataclass(frozen=True, slots=True)
class FormatStep(Generic[Thing]):
    """A row of a table of upgrades: how a thing gets from one format to a later one.

    `run` may be killed at any moment and is then repeated from its beginning: it leaves out what is done already, and
    records the new format last.
    """

    source: int
    target: int
    does: str  #: what it does, as the plan shows it
    run: Callable[[Thing, Report], None]


def steps_from(found: int, table: Sequence[FormatStep[Thing]]) -> list[FormatStep[Thing]]:
    """Return the steps from a format to the last one that the table leads to, in order."""
    steps: list[FormatStep[Thing]] = []
    while step := next((each for each in table if each.source == found), None):
        steps.append(step)
        found = step.target
    return steps


def plan_steps(formats: SupportedFormats, found: int, table: Sequence[FormatStep[Thing]]) -> list[FormatStep[Thing]]:
    """Return the steps that something of this format needs.

    Raises ConfigurationRefused for a newer format, and for an older one from which no steps lead to a supported one.
    """
    steps = steps_from(found, table)
    reached = steps[-1].target if steps else found
    if found < formats.oldest and reached < formats.oldest:
        raise ConfigurationRefused(
            f"{formats.thing} has format {found}, from which this version of Sluice has no upgrade to format "
            f"{formats.oldest}: upgrade with an earlier version first"
        )
    formats.check(max(found, reached))
    return steps


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of an upgrade of this installation."""

    summary: str  #: as the plan shows it
    run: Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class PartState:
    """What is stored in one part of an installation, and what is to be done with it."""

    name: str
    found: str  #: the format that it has, in words; "": nothing is stored
    supported: str  #: the formats that this version can use
    steps: tuple[PlannedStep, ...] = ()
    refusal: str = ""  #: why this version cannot use it; "" if it can, perhaps after the steps
    position: str = ""  #: another one when a node has run since; "" where nothing says so
    in_use: str = ""  #: why the steps cannot be run now


def describe(parts: Sequence[PartState]) -> list[str]:
    """Return the lines that show the state of the parts and the steps, numbered in the order they are run."""
    rows = [(each.name, each.found or "none", _needed(each)) for each in parts]
    width, found = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"  {name:<{width}}  {state:<{found}}  {needed}" for name, state, needed in rows]
    steps = all_steps(parts)
    if steps:
        lines += ["", "To do:", *(f"  {number}. {each.summary}" for number, each in enumerate(steps, 1))]
    return lines


def _needed(part: PartState) -> str:
    if part.steps:
        return f"to be upgraded (supported: {part.supported})"
    return "used as it is" if part.found else "made when Sluice starts"


def all_steps(parts: Sequence[PartState]) -> list[PlannedStep]:
    """Return the steps of all parts, in the order they are run."""
    return [step for part in parts for step in part.steps]
