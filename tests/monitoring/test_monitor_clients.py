"""Test unchanged monitoring tools against the process that serves them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from brokerapp.system.checkout import PROJECT
from tests.monitoring.conftest import basic
from tests.ports import free_port
from tests.served import make_database
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
PASSWORD = "correct horse battery"
#: Seconds a monitor may take on a busy machine.
PATIENCE = 60
#: Where Debian puts Nagios' checks.
CHECK_HTTP = Path("/usr/lib/nagios/plugins/check_http")
#: Where `make test` puts Prometheus and its checker.
PROMETHEUS, PROMTOOL = (Path(sys.prefix) / "prometheus" / name for name in ("prometheus", "promtool"))
QUEUE = "org.apache.activemq:type=Broker,brokerName=localhost,destinationType=Queue,destinationName=Orders.In"

_USER = f"""
from django.contrib.auth.models import User
from console.access.models import Assignment
from tests.ports import free_port
Assignment.objects.create(user=User.objects.create_user("watch", password={PASSWORD!r}), role="monitor")
"""


@dataclass(frozen=True)
class Endpoint:
    """The process with the machine endpoints."""

    port: int

    def get(self, path: str) -> str:
        """A page, as the monitor's user gets it."""
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=basic("watch", PASSWORD))
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.read().decode()


@pytest.fixture(scope="module")
def endpoint(running_broker, tmp_path_factory, migrated) -> Iterator[Endpoint]:
    """The process, on the module's broker, with a user for monitors and two messages to count."""
    data = tmp_path_factory.mktemp("monitor")
    variables = {
        **os.environ, "SLUICE_DATA": str(data), "REDIS_URL": running_broker.redis_url,
        "SLUICE_BROKER": running_broker.name, "DJANGO_SETTINGS_MODULE": "console.settings",
        "DATABASE_URL": f"sqlite:///{data}/console.sqlite3",
    }  # fmt: skip
    make_database(migrated, variables, _USER)
    log = data / "monitor.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "console.exporters.server.asgi:application",
             "--port", "0", "--lifespan=off"],
            cwd=PROJECT, env=variables, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        found = wait_until(
            lambda: re.search(r"running on http://127\.0\.0\.1:(\d+)", log.read_text()), "the port", PATIENCE
        )
        running_broker.send("/queue/Orders.In", "one", "two")
        started = Endpoint(int(found[1]))
        wait_until(lambda: '"Orders.In"} 2' in started.get("/metrics"), "two messages in the numbers", PATIENCE)
        yield started
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE)


def tool(path: Path | str, package: str) -> str:
    """A program that `make test` installs."""
    found = shutil.which(path)
    if found is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing(f"{path} is not there: make clients, or apt-get install {package}")
    return found


def run(*command: str, status: int = 0, stdin: str | None = None) -> str:
    """What a program says; it ends with this status."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_jolokias_own_client_reads_searches_lists_and_is_refused(endpoint):
    if not (HERE / "jolokiajs/node_modules/jolokia.js").exists():
        tool("jolokia.js", "nothing: npm installs it")
    script = str(HERE / "jolokiajs/client.mjs")
    said = json.loads(
        run(tool("node", "nodejs"), script, f"http://127.0.0.1:{endpoint.port}/api/jolokia", "watch", PASSWORD)
    )
    assert said["version"]["protocol"] == "8.2"
    assert (said["size"]["status"], said["size"]["value"]) == (200, 2)
    assert (said["missing"]["status"], said["missing"]["error_type"]) == (
        404, "javax.management.InstanceNotFoundException",
    )  # fmt: skip
    assert said["byPath"]["value"] == "Orders.In"
    assert [each.partition("destinationName=")[2].partition(",")[0] for each in said["search"]] == ["Orders.In"]
    assert said["list"] == ["org.apache.activemq"]
    assert said["purge"]["status"] == 403
    assert isinstance(said["health"], list)


def nagios(endpoint: Endpoint, path: str, *more: str, password: str = PASSWORD, status: int = 0) -> str:
    """What Nagios' check_http says of a page."""
    check = tool(CHECK_HTTP, "monitoring-plugins-basic")
    where = ("-I", "127.0.0.1", "-p", str(endpoint.port), "-u", path, "-a", f"watch:{password}")
    return run(check, *where, *more, status=status)


def test_nagios_finds_what_it_looks_for(endpoint):
    assert nagios(endpoint, "/admin/xml/queues.jsp", "-s", '<queue name="Orders.In">').startswith("HTTP OK")
    path = f"/api/jolokia/read/{QUEUE}/QueueSize"
    assert nagios(endpoint, path, "-s", '"value":2').startswith("HTTP OK")
    assert "WARNING" in nagios(endpoint, "/metrics", password="wrong", status=1)
    assert nagios(endpoint, "/readyz", "-s", '"ready": true').startswith("HTTP OK")


def test_prometheus_own_checker_finds_nothing_wrong_with_the_metrics(endpoint):
    check = tool(PROMTOOL, "prometheus")
    said = endpoint.get("/metrics/v2")
    # It reads Prometheus' older form: counters are described under their whole name, and there is no end mark.
    said = re.sub(r"# HELP (\S+) (.*)\n# TYPE \1 counter", r"# HELP \1_total \2\n# TYPE \1_total counter", said)
    run(check, "check", "metrics", stdin=said.replace("# EOF\n", ""))


def in_guide(beginning: str) -> str:
    """The YAML in the guide that begins so."""
    guide = (PROJECT / "docs/monitoring.md").read_text()
    [found] = [each for each in re.findall(r"```yaml\n(.*?)```", guide, re.S) if each.startswith(beginning)]
    return found


@pytest.fixture
def prometheus(endpoint, tmp_path) -> Iterator[Callable[[str], list]]:
    """Prometheus itself, told what the guide says: a function from a query to its answer."""
    program = tool(PROMETHEUS, "prometheus")
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "rules.yml").write_text((PROJECT / "deploy/prometheus/sluice-rules.yml").read_text())
    scraped = in_guide("scrape_configs:").replace("broker.example:8161", f"127.0.0.1:{endpoint.port}")
    scraped = re.sub(r"authorization:\n\s+\S+ \S+", "basic_auth: {username: watch, password_file: password}", scraped)
    config = tmp_path / "prometheus.yml"
    of_all = "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n"
    config.write_text(
        of_all + scraped + scraped.partition("\n")[2].replace("sluice", "v2").replace("metrics\n", "metrics/v2\n")
    )
    port = free_port()
    log = tmp_path / "prometheus.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def answer(path: str) -> list:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=PATIENCE) as said:
                return list(json.load(said)["data"].values())[-1]
        except urllib.error.URLError:  # it does not listen yet
            assert server.poll() is None, log.read_text()
            return []

    try:
        yield answer
    finally:
        server.kill()
        server.wait(timeout=PATIENCE)


def test_prometheus_scrapes_both_texts_and_answers_queries(prometheus):
    def found(query: str) -> dict[str, str]:
        series = prometheus(f"query?query={quote(query)}")
        return {each["metric"]["job"]: each["value"][1] for each in series}

    up = {"sluice": "1", "v2": "1"}
    wait_until(lambda: found("up") == up, "both scraped", PATIENCE)
    assert found('activemq_queue_queue_size{destination="Orders.In"}') == {"sluice": "2"}
    assert found('sum by (job) (sluice_queue_messages{destination="Orders.In"})') == {"v2": "2"}
    rules = wait_until(lambda: [
        rule for group in prometheus("rules") for rule in group["rules"] if rule["health"] != "unknown"
    ], "the rules evaluated", PATIENCE)  # fmt: skip
    assert {rule["health"] for rule in rules} == {"ok"}
