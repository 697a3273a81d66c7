"""Ask an advisory service for known vulnerabilities: `pip list --format freeze | audit.py [ADDRESS]`.

ADDRESS is that of a service with the interface of OSV; without it PyPI is asked. The exit status is 0 when every
package is known there and has no vulnerability but those in ACCEPTED, else 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

#: Vulnerabilities that do not concern Sluice, by their ids, each with the reason.
ACCEPTED: Mapping[str, str] = {}
#: What the audit needs, said where it cannot have it.
NEEDED = (
    "make audit needs an advisory service: PyPI's (https://pypi.org/pypi/NAME/VERSION/json, which mirrors may lack), "
    "or one with the interface of OSV, named by ADVISORIES=URL (https://api.osv.dev/v1/query)"
)
_ACCEPTED_OPTIONS = [option for each in ACCEPTED for option in ("--ignore-vuln", each)]


def findings(packages: Iterable[str], service: str | None) -> list[str]:
    """Return a sentence for each vulnerability, and for each package about which nothing is known.

    Raises RuntimeError with a sentence if the service does not answer.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{each}\n" for each in packages))
        file.flush()
        asked = ["-s", "osv", "--osv-url", service] if service else ["-s", "pypi"]
        command = [sys.executable, "-m", "pip_audit", "--progress-spinner=off", "--no-deps", "--disable-pip",
                   "--format=json", *asked, *_ACCEPTED_OPTIONS, "-r", file.name]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or [f"pip-audit ended with status {done.returncode}"])[-1]
        raise RuntimeError(f"the advisory service does not answer: {last}") from None
    unknown = [each["name"] for each in dependencies if "skip_reason" in each]
    if len(unknown) == len(dependencies):  # which pip-audit calls no known vulnerabilities
        raise RuntimeError(f"the advisory service knows none of the {len(unknown)} packages")
    return [*_sentences(dependencies), *(f"{each} is not known to the advisory service" for each in unknown)]


def _sentences(dependencies: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"{each['name']} {each['version']} has {found['id']}"
        + (f", mended in {', '.join(found['fix_versions'])}" if found["fix_versions"] else ", not mended yet")
        for each in dependencies
        for found in each.get("vulns", ())
    ]


def main(packages: list[str], service: str | None) -> int:
    """Print the findings; return the exit status."""
    try:
        found = findings(packages, service)
    except RuntimeError as error:
        sys.stderr.write(f"error: {error}\n{NEEDED}\n")
        return 1
    for sentence in found or [f"no known vulnerabilities in {len(packages)} packages"]:
        sys.stdout.write(f"{sentence}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read().split(), sys.argv[1] if len(sys.argv) > 1 else None))
