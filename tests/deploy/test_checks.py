"""The files of deploy/ pass the checkers of the programs that read them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from brokerapp.errors import CONFIGURATION_EXIT_CODE
from brokerapp.system.checkout import PROJECT
from brokerapp.system.environment import Environment
from brokerapp.system.secret_variables import SECRET_VARIABLES
from brokerapp.system.store_address import check_store_url
from tests.deploy.files import CHECKS, DEPLOY, program, read_yaml, run

PROMTOOL = Path(sys.prefix) / "prometheus" / "promtool"
CLIENTS = "make clients"
UNITS = sorted(path.name for path in (DEPLOY / "systemd").glob("*.service"))
TEMPLATES = DEPLOY / "helm/sluice/templates"
YAML_FILES = sorted(
    str(path.relative_to(DEPLOY))
    for ending in ("*.yml", "*.yaml")
    for path in DEPLOY.rglob(ending)
    if not path.is_relative_to(TEMPLATES)
)
#: Most exposure of a unit, as systemd-analyze counts it: 0 is none, 10 everything; in tenths.
MOST_EXPOSURE = 30


@pytest.mark.parametrize("name", YAML_FILES)
def test_yaml_is_tidy(name):
    run(program("yamllint", CLIENTS), "--strict", "-c", DEPLOY / ".yamllint.yaml", DEPLOY / name)


# -- images


def test_the_dockerfile_follows_the_rules_of_hadolint():
    run(program("hadolint", CLIENTS), DEPLOY / "docker/Dockerfile")


def test_images_run_as_a_user_who_is_not_root_with_a_health_check():
    text = (DEPLOY / "docker/Dockerfile").read_text()
    stages = {part.split()[2]: part for part in re.findall(r"^FROM (.*?)(?=^FROM |\Z)", text, re.M | re.S)}
    for name in ("broker", "console"):
        assert "USER 10001:10001" in stages[name]
        assert "HEALTHCHECK" in stages[name]
    assert {name for name, part in stages.items() if "openjdk" in part} == {"console"}


def test_what_the_dockerfile_copies_exists_and_is_not_ignored():
    text = (DEPLOY / "docker/Dockerfile").read_text()
    copied = {
        path
        for line in re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", text, re.M)
        for path in line.split()
    }  # fmt: skip
    kept = re.findall(r"^!(\S+)", (DEPLOY / "docker/Dockerfile.dockerignore").read_text(), re.M)
    assert [each for each in copied if not (PROJECT / each).exists()] == []
    assert [each for each in copied if not any(each == one or each.startswith(f"{one}/") for one in kept)] == []


def test_what_images_take_of_the_requirements_is_in_them():
    lines = (PROJECT / "requirements.txt").read_text()
    sections = ("# -- broker", "# -- archive", "# -- console", "# -- analytics", "# -- build and tests")
    found = [lines.index(each) for each in sections]
    assert found == sorted(found)
    assert re.search("^cython==", lines, re.M)


# -- Compose


def test_the_compose_file_follows_the_schema_of_compose():
    schema = ("--builtin-schema", "vendor.compose-spec")
    run(program("check-jsonschema", CLIENTS), *schema, DEPLOY / "compose/compose.yaml")


def test_secrets_of_compose_are_made_once_and_read_by_sluice(tmp_path):
    script = shutil.copy(DEPLOY / "compose/make-secrets.sh", tmp_path)
    run("sh", script)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    run("sh", script)
    assert made == {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    wanted = {f"./secrets/{name}" for name in made}
    assert {each["file"] for each in read_yaml(DEPLOY / "compose/compose.yaml")["secrets"].values()} == wanted
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    environment = Environment.read(
        {"REDIS_URL": made["store-url"], "DATABASE_URL": made["database-url"], "SLUICE_REPLICAS": "1"}
    )
    assert (environment.replicas, environment.owns_store) == (1, False)


def test_files_of_secrets_that_compose_names_are_of_secrets_that_sluice_reads():
    variables = read_yaml(DEPLOY / "compose/compose.yaml")["services"]["sluice"]["environment"]
    named = {name.removesuffix("_FILE") for name in variables if name.endswith("_FILE")}
    assert named == {"REDIS_URL", "DATABASE_URL"}
    assert named <= set(SECRET_VARIABLES)


# -- systemd


@pytest.fixture(scope="module")
def analyze():
    return program("systemd-analyze", "apt-get install systemd")


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_exposes_little(analyze, name):
    run(analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", DEPLOY / "systemd" / name)


#: What replaces the commands of units where the package is installed, by the unit.
PACKAGE_DROP_INS = {"sluice.service": "package.conf", "sluice-node@.service": "package-node.conf"}


def runnable(name: str) -> str:
    """Return a file for systemd with a program that is installed here: another one is a fault to systemd."""
    return re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", (DEPLOY / "systemd" / name).read_text(), flags=re.M)


@pytest.mark.parametrize("package", [False, True])
def test_systemd_finds_nothing_wrong_with_the_units(analyze, tmp_path, package):
    for name in UNITS:
        (tmp_path / name.replace("@.", "@a.")).write_text(runnable(name))
        if drop_in := PACKAGE_DROP_INS.get(name):
            folder = tmp_path / f"{name}.d"
            folder.mkdir()
            shutil.copy(DEPLOY / "systemd/secrets.conf", folder)
            if package:
                (folder / "package.conf").write_text(runnable(drop_in))
    assert run(analyze, "verify", "--man=no", *sorted(tmp_path.glob("*.service"))) == ""


@pytest.mark.parametrize("name", PACKAGE_DROP_INS)
def test_a_drop_in_for_the_package_starts_what_the_unit_starts(name):
    def started(file: str) -> list[str]:
        text = (DEPLOY / "systemd" / file).read_text()
        [command] = re.findall(r"^ExecStart=(\S.*)$", text, re.M)
        return re.sub(r"^\S+/python manage\.py runbroker|^\S+/sluice broker", "broker", command).split()

    unit, drop_in = started(name), started(PACKAGE_DROP_INS[name])
    assert drop_in[0] in ("broker", "/opt/sluice-package/bin/sluice")
    assert drop_in[1:] == [each for each in unit[1:] if each != "manage.py"]
    assert "\nExecStart=\n" in (DEPLOY / "systemd" / PACKAGE_DROP_INS[name]).read_text(), "systemd would run both"


def test_a_configuration_that_cannot_be_used_is_not_started_again_by_systemd():
    unit = (DEPLOY / "systemd/sluice.service").read_text()
    assert f"\nRestartPreventExitStatus={CONFIGURATION_EXIT_CODE}\n" in unit


def test_variables_of_the_node_unit_are_in_its_example():
    unit = (DEPLOY / "systemd/sluice-node@.service").read_text()
    example = (DEPLOY / "systemd/node-a.env").read_text()
    on_the_command_line = set(re.findall(r"\$\{(\w+)\}", unit))
    assert on_the_command_line | {"REDIS_URL"} == set(re.findall(r"^(\w+)=", example, re.M))
    assert on_the_command_line.isdisjoint(SECRET_VARIABLES), "anybody on the machine can read command lines"


def test_the_drop_in_for_credentials_has_each_secret():
    text = (DEPLOY / "systemd/secrets.conf").read_text()
    found = re.findall(r"^#?LoadCredential=(\w+):/etc/sluice/secrets/(\w+)$", text, re.M)
    assert found == [(name, name) for name in SECRET_VARIABLES]


# -- Helm

STORES = {
    "url": {"urlSecret": "store"},
    "sentinel": {
        "sentinel": {"addresses": ["s-0:26379", "s-1:26379"], "primary": "orders", "passwordSecret": "store"},
        "replicas": 1,
    },
}


def render(values: dict, status: int = 0) -> str:
    """Return what Helm renders of the chart."""
    if not (CHECKS / "helm_python").exists():
        program("helm_python", CLIENTS)
    return run(sys.executable, PROJECT / "tests/deploy/render_chart.py", DEPLOY / "helm/sluice", json.dumps(values),
               status=status)  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_what_the_chart_renders_follows_the_schemas_of_kubernetes(store, tmp_path):
    text = render({"store": STORES[store], "persistence": {"enabled": True}, "service": {"type": "LoadBalancer"}})
    (tmp_path / "chart.yaml").write_text(text)
    said = run(program("kubernetes-validate", CLIENTS), "--strict", tmp_path / "chart.yaml")
    assert said.count("passed") == 5
    [node] = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "StatefulSet"]
    [container] = node["spec"]["template"]["spec"]["containers"]
    pages = [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
    assert pages == ["/healthz", "/readyz"]
    [address] = [each.get("value") for each in container["env"] if each["name"] == "REDIS_URL"]
    if store == "sentinel":
        assert address == "sentinel://:$(STORE_PASSWORD)@s-0:26379,s-1:26379/orders"
        assert check_store_url(address.replace("$(STORE_PASSWORD)", "secret"))


def test_a_chart_of_one_node_has_no_disruption_budget_and_monitors_only_on_request():
    def kinds(**more) -> set[str]:
        return {each["kind"] for each in yaml.safe_load_all(render({"store": STORES["url"], **more})) if each}

    assert kinds(nodes=1) == {"ConfigMap", "Service", "StatefulSet"}
    assert kinds(serviceMonitor={"enabled": True}) >= {"PodDisruptionBudget", "ServiceMonitor"}


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({}, "set store.urlSecret or store.sentinel.addresses: the nodes share a store"),
        ({"store": {**STORES["url"], **STORES["sentinel"]}}, "not both"),
        ({"store": STORES["url"], "nodes": 0}, "/nodes"),
        ({"store": STORES["url"], "node": 2}, "additional properties 'node' not allowed"),
        ({"store": STORES["url"], "broker": {"loginSecret": ""}}, "set broker.loginSecret"),
    ],
)
def test_the_chart_refuses_values_that_make_no_broker(values, rule):
    assert rule in render(values, status=1)


def test_the_broker_configuration_of_the_chart_is_understood_and_requires_a_login(monkeypatch):
    monkeypatch.setenv("SLUICE_USER", "app")
    monkeypatch.setenv("SLUICE_PASSWORD", "secret")
    said = run(sys.executable, PROJECT / "manage.py", "runbroker", "--print-config",
               "--config", DEPLOY / "helm/sluice/files/activemq.xml", "--data", "unused")  # fmt: skip
    assert 'username="app"' in said
    assert "0.0.0.0:61616" in said


# -- proxies


def test_nginx_takes_the_example(tmp_path):
    nginx = program("nginx", "apt-get install nginx")
    openssl = program("openssl", "apt-get install openssl")
    subject = ("-subj", "/CN=console.example.com")
    run(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject,
        "-keyout", tmp_path / "privkey.pem", "-out", tmp_path / "fullchain.pem")  # fmt: skip
    example = (DEPLOY / "nginx/sluice.conf").read_text().replace("/etc/ssl/sluice", str(tmp_path))
    paths = "".join(f"{kind}_temp_path {tmp_path};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; events {{}} http {{ access_log off; {paths} {example} }}"
    )
    run(nginx, "-t", "-e", "stderr", "-c", tmp_path / "nginx.conf")


def test_caddy_takes_the_example(tmp_path):
    caddy = program("caddy", "apt-get install caddy")
    home = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    run(caddy, "validate", "--adapter", "caddyfile", "--config", DEPLOY / "caddy/Caddyfile", env=home)
    run(caddy, "fmt", "--diff", DEPLOY / "caddy/Caddyfile", env=home)


# -- Prometheus


@pytest.fixture(scope="module")
def promtool():
    return program(str(PROMTOOL), CLIENTS)


def test_prometheus_takes_rules_and_configuration(promtool):
    run(promtool, "check", "rules", DEPLOY / "prometheus/sluice-rules.yml")
    run(promtool, "check", "config", "--syntax-only", DEPLOY / "prometheus/prometheus.yml")


def test_each_alert_fires_as_its_test_says(promtool):
    assert "SUCCESS" in run(promtool, "test", "rules", "sluice-rules-test.yml", cwd=DEPLOY / "prometheus")


def test_prometheus_understands_the_queries_of_dashboards(promtool, tmp_path):
    queries = [
        target["expr"].replace("$__rate_interval", "1m")
        for path in (DEPLOY / "grafana").glob("*.json")
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    ]
    assert len(queries) > 60
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}))
    run(promtool, "check", "rules", "--lint=none", tmp_path / "queries.yml")
