"""Secrets come from variables, files or systemd's credentials, and no process shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import psutil
import pytest

from analytics.spans.settings import SpanSettings
from brokerapp.config.reader import read_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import PROJECT, Environment
from brokerapp.system.secret_variables import SECRET_VARIABLES, with_secrets
from console.accounts.auth_settings import AuthSettings
from console.ops.mail_settings import MailServer

#: A value of each variable, and what is secret in it.
SECRETS = {
    "REDIS_URL": ("redis://:store-secret@store:6379/0", "store-secret"),
    "DATABASE_URL": ("postgres://sluice:database-secret@database/sluice", "database-secret"),
    "SLUICE_TLS_PASSWORD": ("tls-secret", "tls-secret"),
    "SLUICE_CLUSTER_PASSWORD": ("cluster-secret", "cluster-secret"),
    "SLUICE_MAIL": ("smtp://sluice:mail-secret@mail:587?tls=1", "mail-secret"),
    "SLUICE_OIDC_CLIENT_SECRET": ("oidc-secret", "oidc-secret"),
    "SLUICE_PASSWORD": ("client-secret", "client-secret"),
    "SLUICE_BACKUP_PASSPHRASE": ("backup-secret", "backup-secret"),
    "SPARK_REMOTE": ("sc://spark:15002/;token=spark-secret", "spark-secret"),
    "OTEL_EXPORTER_OTLP_HEADERS": ("authorization=Bearer%20spans-secret", "spans-secret"),
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": ("authorization=Bearer%20traces-secret", "traces-secret"),
}
NAME = "SLUICE_TLS_PASSWORD"


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    """Return variables that name a file for each secret."""
    for name, (value, _) in SECRETS.items():
        (tmp_path / name).write_text(f"{value}\n")
    return {f"{name}_FILE": str(tmp_path / name) for name in SECRETS}


def test_there_is_an_example_of_each_secret():
    assert list(SECRETS) == list(SECRET_VARIABLES)


def test_secrets_are_read_from_the_files_that_variables_name(files):
    assert {name: with_secrets(files)[name] for name in SECRETS} == {
        name: value for name, (value, _) in SECRETS.items()
    }


def test_secrets_are_read_from_credentials_of_systemd(files, tmp_path):
    (tmp_path / "OTHER").write_text("of another service")
    found = with_secrets({"CREDENTIALS_DIRECTORY": str(tmp_path), "SLUICE_PORT": "8000"})
    assert found.pop("CREDENTIALS_DIRECTORY") == str(tmp_path)
    assert found == {"SLUICE_PORT": "8000"} | {name: value for name, (value, _) in SECRETS.items()}


def test_all_settings_take_secrets_from_files(files, tmp_path, monkeypatch):
    environment = Environment.read(files)
    assert environment.redis_url == SECRETS["REDIS_URL"][0]
    assert environment.database_url == SECRETS["DATABASE_URL"][0]
    assert (environment.tls_password, environment.cluster_password) == ("tls-secret", "cluster-secret")
    assert environment.spark_remote == SECRETS["SPARK_REMOTE"][0]
    assert MailServer.read(files).password == "mail-secret"
    assert AuthSettings.read(files).client_secret == "oidc-secret"
    assert SpanSettings.read(files, "b").headers == {"authorization": "Bearer traces-secret"}
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "activemq.xml").write_text(
        '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b"><plugins><simpleAuthenticationPlugin>'
        '<users><authenticationUser username="app" password="${SLUICE_PASSWORD}" groups="g"/></users>'
        "</simpleAuthenticationPlugin></plugins></broker>"
    )
    [user] = read_config(tmp_path / "activemq.xml").authentication.users
    assert user.password == "client-secret"


def test_settings_that_are_printed_hide_secrets(files):
    printed = "\n".join(
        map(
            repr,
            (Environment.read(files), MailServer.read(files), AuthSettings.read(files), SpanSettings.read(files, "")),
        )
    )
    assert "SLUICE" not in printed
    assert "sluice" in printed
    assert [secret for _, secret in SECRETS.values() if secret in printed] == []


@pytest.mark.parametrize(
    ("written", "read"), [("x\n", "x"), ("x\r\n", "x"), (" x ", " x "), ("x\ny\n", "x\ny"), ("ü", "ü")]
)
def test_only_newlines_at_the_end_are_removed(tmp_path, written, read):
    (tmp_path / "secret").write_text(written, newline="")
    assert with_secrets({f"{NAME}_FILE": str(tmp_path / "secret")})[NAME] == read


def test_a_secret_that_is_given_twice_is_refused_with_both_places(tmp_path):
    file, credential = tmp_path / "file", tmp_path / NAME
    for each in (file, credential):
        each.write_text("secret")
    by_file, by_credential = {f"{NAME}_FILE": str(file)}, {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    for variables, places in (
        ({NAME: "secret"} | by_file, f"{NAME} and {NAME}_FILE={file} are set"),
        ({NAME: "secret"} | by_credential, f"{NAME} and the credential {NAME} of systemd ({credential}) are set"),
        (by_file | by_credential, f"{NAME}_FILE={file} and the credential {NAME} of systemd ({credential}) are set"),
    ):
        with pytest.raises(ConfigurationRefused, match=f"^{re.escape(places)}: set only one of them$"):
            with_secrets(variables)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("missing", "cannot be read: No such file or directory"),
        ("", "cannot be read: Is a directory"),
        ("binary", "cannot be read: not UTF-8 text"),
        ("empty", "is empty"),
    ],
)
def test_a_file_that_has_no_secret_is_refused_with_its_variable(tmp_path, path, rule):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigurationRefused, match=f"^{NAME}_FILE={re.escape(str(tmp_path / path))} {rule}$"):
        with_secrets({f"{NAME}_FILE": str(tmp_path / path)})


def test_a_file_is_named_by_its_absolute_path_as_processes_have_different_working_directories():
    with pytest.raises(ConfigurationRefused, match=f"^{NAME}_FILE=secrets/tls must be an absolute path$"):
        with_secrets({f"{NAME}_FILE": "secrets/tls"})


def test_other_variables_that_end_in_file_are_left_alone():
    variables = {"SSL_CERT_FILE": "/nowhere", f"{NAME}_FILE": "", "SLUICE_DATA_FILE": "/nowhere"}
    assert with_secrets(variables) == variables


def test_the_table_of_the_documentation_has_each_secret():
    section = (PROJECT / "docs/configuration.md").read_text().partition("\n## Secrets\n")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.M)) == SECRET_VARIABLES


def test_no_variable_that_looks_like_a_secret_is_missing_from_the_table():
    text = "\n".join(
        path.read_text()
        for package in ("brokerapp", "console", "analytics")
        for path in (PROJECT / package).rglob("*.py")
    )
    names = set(
        re.findall(r'"([A-Z]+_[A-Z0-9_]*(?:PASSWORD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS|HEADERS)[A-Z_]*)"', text)
    )
    ours = {each.removesuffix("_FILE") for each in names if each.startswith(("SLUICE_", "OTEL_"))}
    assert ours - set(SECRET_VARIABLES) == set()
    assert "SLUICE_CLUSTER_PASSWORD" in ours


CONFIGURATION = """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b">
<transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors></broker>"""


def test_a_node_reads_its_store_from_a_file_and_shows_it_in_no_argument_variable_or_log(store_url, tmp_path):
    url = store_url.replace("unix://", "unix://default:store-secret@")
    (tmp_path / "url").write_text(f"{url}\n")
    (tmp_path / "activemq.xml").write_text(CONFIGURATION)
    command = [
        sys.executable,
        "manage.py",
        "runbroker",
        "--config",
        tmp_path / "activemq.xml",
        "--data",
        tmp_path / "data",
    ]
    variables = os.environ | {"REDIS_URL_FILE": str(tmp_path / "url")}
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen(command, cwd=PROJECT, env=variables, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert node.stdout.readline() == "ready\n", (tmp_path / "log").read_text()
        shown = [*psutil.Process(node.pid).cmdline(), *psutil.Process(node.pid).environ().values()]
        assert str(tmp_path / "url") in shown
        assert not (tmp_path / "data/store").exists(), "it uses the store that the file names"
        assert (tmp_path / "data/redis.url").read_text() == url
        assert (tmp_path / "data/redis.url").stat().st_mode & 0o077 == 0
    finally:
        node.terminate()
        said = node.communicate(timeout=60)[0]
    assert [each for each in (*shown, said, (tmp_path / "log").read_text()) if "store-secret" in each] == []
