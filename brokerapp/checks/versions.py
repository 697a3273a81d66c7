"""Check versions: of Python, of the libraries against those that Sluice was tested with, and of the nodes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from brokerapp.checks.results import Finding
from brokerapp.checks.store import StoreReading
from brokerapp.nodes.links.members import NodeMember
from brokerapp.system.checkout import PROJECT
from brokerapp.version import VERSION

NEEDED_PYTHON = (3, 11)
#: A line of requirements.txt, or of the metadata of a package: a name, options, and the version it is pinned to.
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?\s*==\s*([A-Za-z0-9._]+)")
#: Where the pins of those begin that only developers need.
_TESTS_ONLY = "# -- build and tests"


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions that were found; a library that is missing has none."""

    python: tuple[int, int, int]
    sluice: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)
    installed: Mapping[str, str] = field(default_factory=dict)


def measure_versions(_subject: object = None) -> Versions:
    """Return the versions of Python and of the libraries that are pinned."""
    pinned = _pins()
    installed = {}
    for name in pinned:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Versions(sys.version_info[:3], VERSION, pinned, installed)


def _pins() -> dict[str, str]:
    """Return the pinned versions by name: of the folder of the project, or else of the package that is installed."""
    file = PROJECT / "requirements.txt"
    if file.exists():
        lines = file.read_text().partition(_TESTS_ONLY)[0].splitlines()
    else:
        try:
            lines = metadata.requires("sluice") or []
        except metadata.PackageNotFoundError:
            lines = []
    found = (_PIN.match(line) for line in lines)
    return {each[1]: each[2] for each in found if each}


def judge_python(found: Versions) -> Iterator[Finding]:
    """Judge the version of Python."""
    version = ".".join(map(str, found.python))
    if found.python[:2] == NEEDED_PYTHON:
        yield Finding.ok(f"Sluice {found.sluice} with Python {version}.")
    else:
        needed = ".".join(map(str, NEEDED_PYTHON))
        yield Finding.failure(f"Python {version}: Sluice needs Python {needed}.", f"Install it with Python {needed}.")


def judge_libraries(found: Versions) -> Iterator[Finding]:
    """Judge whether libraries have the versions that Sluice was tested with."""
    others = {
        name: version for name, version in found.installed.items() if version.partition("+")[0] != found.pinned[name]
    }
    if others:
        named = ", ".join(f"{name} {version} (tested with {found.pinned[name]})" for name, version in others.items())
        yield Finding.warning(
            f"Libraries of other versions than Sluice was tested with: {named}.", "Install Sluice again."
        )
    else:
        yield Finding.ok(f"{len(found.installed)} libraries have the versions that Sluice was tested with.")


def judge_nodes(reading: StoreReading) -> Iterator[Finding]:
    """Judge whether all nodes of the broker run this version of Sluice."""
    if not reading.nodes:
        yield Finding.skipped(reading.stopped or "No node is running.")
        return
    nodes = [NodeMember.from_record(name, about) for name, about in sorted(reading.nodes.items())]
    if older := [each for each in nodes if _order(each.version) < _order(VERSION)]:
        yield Finding.warning(
            f"Older than Sluice {VERSION}: {_with_versions(older)}. What only the newer version can do waits for them.",
            "Complete the upgrade of all nodes.",
        )
    if newer := [each for each in nodes if _order(each.version) > _order(VERSION)]:
        yield Finding.warning(
            f"Newer than Sluice {VERSION}, which checks them: {_with_versions(newer)}.",
            "Complete the upgrade: install the newer version here as well.",
        )
    if not older and not newer:
        count = len(nodes)
        names = ", ".join(each.name for each in nodes)
        yield Finding.ok(f"{count} node{'s' * (count != 1)} of Sluice {VERSION}: {names}.")


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return what versions are ordered by: their numbers; a pre-release comes before its release, none before all."""
    numbers = re.match(r"[0-9.]*", version)
    release = numbers[0].strip(".") if numbers else ""
    suffix = version[len(release) :]
    return tuple(int(each) for each in release.split(".") if each), not suffix, suffix


def _with_versions(nodes: Sequence[NodeMember]) -> str:
    return ", ".join(f"{each.name} ({each.version or 'an earlier version'})" for each in nodes)
