"""The bill of materials of `make sbom` is complete and follows its schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brokerapp.system.environment import PROJECT
from brokerapp.version import VERSION
from tests.security.supply_chain import run_program

#: Libraries that pages load, or that packages bring along for browsers and as programs.
BUNDLED = {"plotly.js", "htmx", "swagger-ui", "axe-core", "valkey"}


@pytest.fixture(scope="module")
def bill(tmp_path_factory) -> dict:
    """Return the bill of this environment, as `make sbom` writes it."""
    file = tmp_path_factory.mktemp("bill") / "dist/sluice.cdx.json"
    done = run_program("bill_of_materials.py", sys.prefix, file)
    assert done.returncode == 0, done.stderr
    bill = json.loads(file.read_text())
    assert done.stdout.startswith(f"{file}: {len(bill['components'])} components, ")
    return bill


@pytest.mark.long
def test_the_bill_follows_the_schema_of_cyclonedx(bill):
    # The program writes nothing that JsonStrictValidator of CycloneDX refuses.
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert (bill["metadata"]["component"]["name"], bill["metadata"]["component"]["version"]) == ("sluice", VERSION)


@pytest.mark.long
def test_each_pin_is_in_the_bill(bill):
    found = {(re.sub(r"[-_.]+", "-", each["name"]).lower(), each["version"]) for each in bill["components"]}
    pinned = {
        (re.sub(r"[-_.]+", "-", name).lower(), version)
        for file in PROJECT.glob("requirements*.txt")
        for name, version in re.findall(r"^([A-Za-z][\w.-]*)(?:\[.*?\])?==(\S+)", file.read_text(), re.MULTILINE)
    }
    assert len(pinned) > 50
    assert sorted(pinned - found) == []


@pytest.mark.long
def test_scripts_and_servers_that_packages_bring_along_have_version_licence_and_hash(bill):
    parts = {each["name"]: each for each in bill["components"] if each["name"] in BUNDLED}
    assert set(parts) == BUNDLED
    for each in parts.values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", each["version"])
        assert each["purl"].endswith(f"@{each['version']}")
        assert each["licenses"][0]["license"]["id"]
        assert re.fullmatch(r"[0-9a-f]{64}", each["hashes"][0]["content"])
    dependencies = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    [plotly] = [found for ref, found in dependencies.items() if ref.startswith("plotly==")]
    assert parts["plotly.js"]["bom-ref"] in plotly


@pytest.mark.long
def test_java_libraries_of_spark_and_npm_packages_of_tests_are_in_the_bill(bill):
    purls = {each["purl"]: each for each in bill["components"]}
    java = [each for each in purls if each.startswith(("pkg:maven/", "pkg:generic/spark"))]
    assert len(java) > 150
    assert any(each.startswith("pkg:maven/com.fasterxml.jackson.core/") for each in java)
    stomp = json.loads((PROJECT / "tests/clients/stompjs/package.json").read_text())["dependencies"]["@stomp/stompjs"]
    found = purls[f"pkg:npm/%40stomp/stompjs@{stomp}"]
    assert (found["scope"], found["hashes"][0]["alg"]) == ("excluded", "SHA-512")


def test_every_script_of_another_maker_in_the_project_is_in_the_bill():
    scripts = subprocess.run(
        ["git", "ls-files", "*.js", "*.css", "*.mjs", "*.woff2"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert len(scripts) > 20
    foreign = re.compile(r"@license|\(c\) |copyright|licensed under", re.IGNORECASE)
    found = [each for each in scripts if foreign.search((PROJECT / each).read_text(errors="replace"))]
    assert found == [], "files of others are in packages that the bill lists"
    assert all(Path(each).parts[0] in {"static", "tests"} for each in scripts)
