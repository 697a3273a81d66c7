"""Build the wheel, install it with each extra into an empty environment, and start it there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from zipfile import ZipFile

import pytest

from brokerapp.system import extras
from brokerapp.version import PRODUCT, VERSION
from tests.e2e.installation import STOP_SECONDS, Browser
from tests.package.clients import exchange
from tests.ports import free_port
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[2]
#: What a build reads, and two folders that it must leave alone.
SOURCES = ("brokerapp", "analytics", "console", "static", "templates", "tests/package", "benchmarks",
           "setup.py", "pyproject.toml", "requirements.txt", "README.md")  # fmt: skip
#: Packages that the broker alone needs, with those that these need.
MOST_PACKAGES = 20
#: Until everything runs, without compiled Python files, and where others are at work, too.
START_SECONDS = 300
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="alone">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
#: Beginnings of variables that would say where and how it is started.
_NOT_KEPT = ("DJANGO_", "SLUICE_", "PYTHON")
#: Imports every module of the package but migrations; prints how many there were.
IMPORT_ALL = """
import importlib, os, pkgutil
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
import django
django.setup()
found = 0
for name in ("brokerapp", "analytics", "console"):
    for each in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if "migrations" not in each.name and each.name != "brokerapp.selectors.xpath.worker":
            importlib.import_module(each.name)
            found += 1
print(found)
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project without what was compiled here, and with data that no build may take."""
    copy = tmp_path_factory.mktemp("project")
    for each in SOURCES:
        if (PROJECT / each).is_dir():
            shutil.copytree(PROJECT / each, copy / each, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.c"))
        else:
            shutil.copy(PROJECT / each, copy / each)
    (copy / "var").mkdir()
    (copy / "var/admin-password").write_text("secret")
    return copy


@pytest.fixture(scope="module")
def wheel(copy, tmp_path_factory):
    """The wheel, built of the copy."""
    dist = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, copy]
    subprocess.run(command, check=True, timeout=600)
    [built] = dist.iterdir()
    return built


class Environment:
    """A virtual environment with the wheel and an extra, started in a folder that has nothing of the project."""

    def __init__(self, folder, wheel, extra):
        self.folder, self.bin = folder, folder / "venv/bin"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "SLUICE_", "PYTHON"))
        }
        self.variables = {**kept, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder), "XDG_DATA_HOME": ""}
        self.here = folder / "here"
        self.here.mkdir()
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=120)
        cache = ["--cache-dir", os.environ.get("PIP_CACHE_DIR") or Path("~/.cache/pip").expanduser()]
        command = [self.bin / "pip", "install", "--quiet", "--disable-pip-version-check", *cache, f"{wheel}{extra}"]
        subprocess.run(command, check=True, timeout=900)
        self.packages = folder / "venv/lib/python3.11/site-packages"
        self.installed = self._files()

    def _files(self):
        return {each for each in self.packages.rglob("*") if "__pycache__" not in each.parts}

    def is_unchanged(self):
        """Whether nothing was written beside the packages, which may be read-only."""
        return self._files() == self.installed

    def say(self, *command, status=0, seconds=60, **variables):
        """What a command of the environment prints, on standard error where it fails."""
        done = subprocess.run(
            [self.bin / command[0], *map(str, command[1:])], cwd=self.here, env={**self.variables, **variables},
            capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr if status else done.stdout

    def start(self, *command, output, **variables):
        """Start a command of the environment whose output goes into a file."""
        with output.open("w") as file:
            return subprocess.Popen(
                [self.bin / command[0], *map(str, command[1:])], cwd=self.here, env={**self.variables, **variables},
                stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip


def installed(extra):
    """A fixture: an environment with this extra."""

    @pytest.fixture(scope="module")
    def environment(tmp_path_factory, wheel):
        return Environment(tmp_path_factory.mktemp("installed"), wheel, extra)

    return environment


alone, with_console, with_all = installed(""), installed("[console]"), installed("[all]")


def test_the_wheel_has_the_packages_and_their_files_and_nothing_else(wheel):
    names = set(ZipFile(wheel).namelist())
    assert {each.split("/")[0] for each in names} == {
        "brokerapp", "analytics", "console", f"sluice-{VERSION}.dist-info",
    }  # fmt: skip
    for folder in ("static", "templates"):
        files = {str(each.relative_to(PROJECT)) for each in (PROJECT / folder).rglob("*") if each.is_file()}
        assert {f"console/assets/{each}" for each in files} <= names
    lua = {str(each.relative_to(PROJECT)) for each in (PROJECT / "brokerapp").rglob("*.lua")}
    assert lua <= names
    assert {Path(each).suffix for each in names if each.startswith(("brokerapp/", "analytics/"))} <= {
        ".py", ".pyi", ".lua", ".so",
    }  # fmt: skip
    compiled = [each for each in names if re.fullmatch(r"brokerapp/stomp/compiled_sends\..*\.so", each)]
    assert len(compiled) == bool(shutil.which("gcc"))


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no C compiler")
def test_the_reader_of_sends_is_compiled_in_place_as_make_setup_and_the_images_do(copy):
    compiler = Path(sys.executable).with_name("cythonize")
    command = [compiler, "-i", "-q", "brokerapp/stomp/compiled_sends.pyx"]
    subprocess.run(command, cwd=copy, check=True, capture_output=True, timeout=120)
    assert len(list((copy / "brokerapp/stomp").glob("compiled_sends.*.so"))) == 1


def test_the_broker_alone_serves_clients_with_a_dozen_packages(alone, tmp_path):
    needed = json.loads(alone.say("pip", "list", "--format=json"))
    names = {each["name"].lower() for each in needed} - {"pip", "setuptools", "sluice"}
    assert len(names) <= MOST_PACKAGES
    assert not {"django", "pyspark", "pyarrow", "cython", "celery"} & names
    assert "No module named 'django'" in alone.say("python", "-c", "import django", status=1)
    assert alone.say("sluice", "--version") == f"sluice {VERSION}\n"
    port, config, data, output = free_port(), tmp_path / "activemq.xml", tmp_path / "data", tmp_path / "output"
    config.write_text(CONFIG.format(port=port))
    node = alone.start("sluice", "broker", "--config", config, "--data", data, output=output)
    try:
        wait_until(lambda: "ready\n" in output.read_text(), "the node is ready", START_SECONDS)
        assert exchange(port, "hello") == (PRODUCT, "hello")
        wait_until(
            lambda: "queue://package" in alone.say("sluice", "ctl", "destinations", "--data", data),
            "the figures of the queue, which come once a second",
        )
        node.send_signal(signal.SIGTERM)
        assert node.wait(STOP_SECONDS) == 0
    finally:
        node.kill()
    needs = extras.missing("console", "`sluice up` needs").partition(sys.executable)[0]
    said = alone.say("sluice", "up", status=1)
    assert said.startswith(f"error: {needs}{alone.folder}"), said
    assert alone.is_unchanged()


def test_the_console_serves_pages_and_static_files_without_spark(with_console, tmp_path):
    assert "No module named 'pyspark'" in with_console.say("python", "-c", "import pyspark", status=1)
    console, stomp, openwire, monitor = (free_port() for _ in range(4))
    ports = {
        "SLUICE_PORT": str(console), "SLUICE_STOMP_PORT": str(stomp), "SLUICE_OPENWIRE_PORT": str(openwire),
        "SLUICE_MONITOR_PORT": str(monitor),
    }  # fmt: skip
    output, data = tmp_path / "output", with_console.folder / ".local/share/sluice"
    for each in ("brokerapp", "analytics", "console"):  # folders of these names where it is started are not imported
        (with_console.here / each).mkdir()
        (with_console.here / each / "__init__.py").write_text("raise SystemExit('imported from the current directory')")
    running = with_console.start("sluice", "up", output=output, **ports)
    try:
        wait_until(
            lambda: "Sluice is ready" in output.read_text() or running.poll() is not None, "it starts", START_SECONDS
        )
        assert "Sluice is ready" in output.read_text(), output.read_text()
        browser = Browser(f"http://127.0.0.1:{console}")
        _, login = browser.get("/login/")
        assert "Operations console of" in login
        for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', login):
            with urllib.request.urlopen(f"http://127.0.0.1:{console}{address}", timeout=20) as answer:
                assert answer.read(), address
        password = (data / "admin-password").read_text().strip()
        browser.submit("/login/", username="admin", password=password)
        _, page = browser.get("/analytics/")
        assert "Analyses cannot run here." in page
        assert f"Sluice {VERSION}" in page
        static = re.search(r"/static/[^/]+/", login)[0]
        _, plotly = browser.get(f"{static}plotly/plotly.min.js")
        assert "plotly.js" in plotly[:400]
        assert json.loads(browser.get("/api/openapi.json")[1])["info"]["version"] == VERSION
        assert "orders to the topic VirtualTopic.Orders" in with_console.say(
            "sluice", "demo", "--seconds", "3", **ports
        )
        assert "queue://Invoices" in with_console.say("sluice", "ctl", "destinations", **ports)
        running.send_signal(signal.SIGINT)
        assert running.wait(STOP_SECONDS) == 0, output.read_text()
    finally:
        running.kill()
    assert "restarting" not in output.read_text()
    assert with_console.is_unchanged()


def test_everything_can_be_imported_where_all_extras_are_installed(with_all):
    count = int(with_all.say("python", "-c", IMPORT_ALL, seconds=300))
    assert count > 700
    assert with_all.say("sluice", "--version") == f"sluice {VERSION}\n"
    assert with_all.is_unchanged()
