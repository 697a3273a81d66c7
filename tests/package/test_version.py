"""Test that the version, and versions of packages, are the same wherever they stand."""

import re
import tomllib
from pathlib import Path

import yaml

from brokerapp.version import VERSION
from console.api.composition import api

PROJECT = Path(__file__).resolve().parents[2]


def read(path):
    return (PROJECT / path).read_text()


def test_the_version_is_a_semantic_one_and_the_newest_of_the_changelog():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", read("CHANGELOG.md"), re.M)
    assert newest[1] == VERSION


def test_chart_images_and_their_documentation_have_the_version():
    chart = yaml.safe_load(read("deploy/helm/sluice/Chart.yaml"))
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    for path in ("deploy/compose/compose.yaml", "docs/deployment.md"):
        tags = set(re.findall(r"\bsluice-(?:console|broker):(\S+)", read(path)))
        assert tags == {VERSION}, path
    for path in ("README.md", "docs/deployment.md"):
        assert set(re.findall(r"\bsluice-(\d[\w.]*?)-", read(path))) <= {VERSION}, path


def test_the_description_of_the_api_has_the_version():
    assert api.get_openapi_schema()["info"]["version"] == VERSION


def test_what_builds_the_wheel_is_pinned_and_the_same_as_in_a_checkout():
    needed = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert [each for each in needed if "==" not in each] == []
    [cython] = [each for each in needed if each.startswith("cython==")]
    assert re.search(rf"^{re.escape(cython)}\s", read("requirements.txt"), re.M)
