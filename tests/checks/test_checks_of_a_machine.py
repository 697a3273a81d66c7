"""Test checks of ports, disk, system, certificates and versions, and that they are run side by side with a limit."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from brokerapp.checks import certificates, command_line, disk, ports, system, versions
from brokerapp.checks.certificates import CertificateUse, covers
from brokerapp.checks.disk import DiskUse, FsyncTimes
from brokerapp.checks.installation import of_configuration, of_environment
from brokerapp.checks.ports import PortUse
from brokerapp.checks.report import text_report
from brokerapp.checks.results import Check, CheckResult, Finding, Level, exit_code, summary
from brokerapp.checks.runner import run_checks
from brokerapp.checks.system import SystemLimits
from brokerapp.checks.table import BROKER_CHECKS
from brokerapp.checks.versions import Versions
from brokerapp.config import TransportConnector, default_config
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.system.environment import PROJECT, Environment
from brokerapp.system.process_lock import lock_directory
from brokerapp.version import VERSION
from tests.certificates import Authority
from tests.ports import free_port

GIB = 1024**3


def levels(findings) -> list[Level]:
    return [each.level for each in findings]


# -- ports


@contextmanager
def listening(folder: Path, lock: bool):
    """Another process that listens on a free port, and may own the folder."""
    script = """
import socket, sys, time
from pathlib import Path
from brokerapp.system.process_lock import lock_directory
held = lock_directory(Path(sys.argv[1])) if sys.argv[2] == "lock" else None
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", script, os.path.relpath(folder, PROJECT), "lock" if lock else "no"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.pid, PortUse(int(process.stdout.readline()), "STOMP", "SLUICE_STOMP_PORT")
        finally:
            process.kill()


def test_a_port_that_another_process_holds_is_a_failure_that_names_it(tmp_path):
    with listening(tmp_path, lock=False) as (pid, port):
        [finding] = ports.judge_ports(ports.measure_ports([port], tmp_path, is_running=False))
    assert finding.level is Level.FAILURE
    assert f"Port {port.number} on 127.0.0.1 for STOMP is held by process {pid} ({sys.executable} -c" in finding.text
    assert finding.action == "Stop it, or set SLUICE_STOMP_PORT to another port."


def test_a_port_that_the_installation_holds_is_in_order(tmp_path):
    with listening(tmp_path, lock=True) as (_, port):
        [finding] = ports.judge_ports(ports.measure_ports([port], tmp_path, is_running=True))
    assert finding == Finding.ok(f"Held by Sluice: {port.number} (STOMP).")


def test_a_port_that_nobody_listens_on_while_sluice_runs_is_a_failure(tmp_path):
    silent = PortUse(free_port(), "OpenWire", "SLUICE_OPENWIRE_PORT")
    with listening(tmp_path, lock=True) as (_, port):
        states = ports.measure_ports([port, silent], tmp_path, is_running=True)
    found = list(ports.judge_ports(states))
    assert found[0].text == f"Sluice runs, but nothing listens on {silent.number} (OpenWire)."
    assert levels(found) == [Level.FAILURE, Level.OK]
    starting = replace(states, is_starting=True)
    assert levels(ports.judge_ports(starting)) == [Level.WARNING, Level.OK]


def test_free_ports_are_named_and_one_port_for_two_uses_is_a_failure(tmp_path):
    number = free_port()
    once = PortUse(number, "STOMP", "SLUICE_STOMP_PORT")
    assert list(ports.judge_ports(ports.measure_ports([once], tmp_path, False))) == [
        Finding.ok(f"Free: {number} (STOMP).")
    ]
    twice = ports.measure_ports([once, PortUse(number, "OpenWire", "SLUICE_OPENWIRE_PORT")], tmp_path, False)
    assert Level.FAILURE in levels(ports.judge_ports(twice))


WITH_TLS = {"SLUICE_TLS_CERTIFICATE": "b.pem", "SLUICE_STOMP_SSL_PORT": "61612"}


@pytest.mark.parametrize(
    ("variables", "level", "text"),
    [
        ({"SLUICE_BIND": "0.0.0.0"}, Level.SKIPPED, "TLS is not configured."),
        (WITH_TLS, Level.OK, "Ports without TLS accept connections from this machine only."),
        (
            WITH_TLS | {"SLUICE_BIND": "0.0.0.0"},
            Level.WARNING,
            "Other machines can connect without TLS, and send passwords unencrypted: 61613 (STOMP), 61616 (OpenWire), "
            "8161 (monitoring).",
        ),
        (
            WITH_TLS | {"SLUICE_BIND": "0.0.0.0", "SLUICE_PLAIN_BIND": "127.0.0.1"},
            Level.OK,
            "Ports without TLS accept connections from this machine only.",
        ),
    ],
)
def test_ports_without_tls_that_other_machines_reach_are_warned_of_where_there_is_tls(tmp_path, variables, level, text):
    here = of_environment(Environment.read({"SLUICE_DATA": str(tmp_path), **variables}))
    [check] = [each for each in BROKER_CHECKS if each.id == "tls.plain_ports"]
    [finding] = check.judge(check.measure(here))
    assert (finding.level, finding.text) == (level, text)
    assert ("SLUICE_PLAIN_BIND=127.0.0.1" in finding.action) == (level is Level.WARNING)


def test_ports_of_a_configuration_file_without_tls_are_warned_of_by_their_connectors(tmp_path):
    connectors = (
        TransportConnector("plain", "stomp", "10.0.0.1", 1),
        TransportConnector("secure", "ssl", "0.0.0.0", 2),
    )
    config = replace(default_config("b"), connectors=connectors, tls=TlsStores(KeyStore("b.p12")))
    [check] = [each for each in BROKER_CHECKS if each.id == "tls.plain_ports"]
    [finding] = check.judge(check.measure(of_configuration(config, tmp_path, None, 0)))
    assert finding == Finding.warning(
        "Other machines can connect without TLS, and send passwords unencrypted: 1 (plain).",
        "Set the host of transportConnector plain to 127.0.0.1.",
    )


def test_whether_an_installation_runs_is_seen_without_locking_its_folder(tmp_path):
    from brokerapp.checks.port_holders import is_locked, owner_of

    assert not is_locked(tmp_path)
    held = lock_directory(tmp_path)
    assert is_locked(tmp_path)
    assert owner_of(tmp_path) == os.getpid()
    held.release()
    assert not is_locked(tmp_path)


# -- disk


def test_the_time_of_an_fsync_is_measured_and_nothing_is_left(tmp_path):
    found = disk.measure_fsync(tmp_path / "not" / "there")
    assert found.folder == tmp_path
    assert len(found.milliseconds) == disk.FSYNCS
    assert all(each > 0 for each in found.milliseconds)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("times", "level"),
    [((0.5,) * 9, Level.OK), ((30.0,) * 9, Level.WARNING), ((0.5,) * 8 + (400.0,), Level.WARNING)],
)
def test_slow_and_stuttering_disks_are_warned_of(times, level):
    assert levels(disk.judge_fsync(FsyncTimes(Path("/data"), times))) == [level]


@pytest.mark.parametrize(
    ("total", "free", "level"),
    [
        (100 * GIB, 40 * GIB, Level.OK),
        (1000 * GIB, 60 * GIB, Level.OK),
        (100 * GIB, 10 * GIB, Level.WARNING),
        (100 * GIB, GIB // 8, Level.FAILURE),
    ],
)
def test_free_space_is_judged_by_the_limit_of_nodes(total, free, level):
    assert levels(disk.judge_space(DiskUse(Path("/data"), total, free, 0, 0))) == [level]


def test_a_full_disk_fails_and_is_measured(tmp_path):
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        with (tmp_path / "all").open("wb") as file:
            file.write(bytes(1024 * 1024))
        assert levels(disk.judge_space(disk.measure_disk(tmp_path))) == [Level.FAILURE]
        [result] = run_checks([Check("f", "Disk", "Fsync", disk.measure_fsync, disk.judge_fsync, True)], tmp_path)
        assert "No space left on device" in result.findings[0].text
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize(
    ("total", "free", "level"),
    [(1000, 900, Level.OK), (1000, 100, Level.WARNING), (1000, 5, Level.FAILURE), (0, 0, Level.SKIPPED)],
)
def test_inodes_are_judged_where_there_is_a_fixed_number_of_them(total, free, level):
    assert levels(disk.judge_inodes(DiskUse(Path("/data"), GIB, GIB, total, free))) == [level]


# -- system


def test_limits_of_a_running_process_are_read():
    found = system.measure_system(os.getpid(), has_store=True)
    assert found.is_of_running
    assert levels(system.judge_files(found)) in ([Level.OK], [Level.WARNING])


@pytest.mark.parametrize(
    ("judge", "changed", "level"),
    [
        (system.judge_files, {"open_files": 1024}, Level.WARNING),
        (system.judge_files, {"open_files": 65536}, Level.OK),
        (system.judge_overcommit, {"overcommit": 0}, Level.WARNING),
        (system.judge_overcommit, {"overcommit": 1}, Level.OK),
        (system.judge_overcommit, {"overcommit": 0, "has_store": False}, Level.SKIPPED),
        (system.judge_huge_pages, {"huge_pages": "always"}, Level.WARNING),
        (system.judge_huge_pages, {"huge_pages": "madvise"}, Level.OK),
        (system.judge_huge_pages, {"huge_pages": None}, Level.SKIPPED),
    ],
)
def test_what_valkey_warns_of_is_warned_of(judge, changed, level):
    limits = {"open_files": 1, "is_of_running": True, "overcommit": 1, "huge_pages": "never", "has_store": True}
    assert levels(judge(SystemLimits(**{**limits, **changed}))) == [level]


# -- certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


def judged(identity, *hosts, addresses=(), key_mode=0o600) -> list[Finding]:
    for file in (identity.key, identity.pem, identity.p12):
        file.chmod(key_mode)
    use = CertificateUse(TlsStores(KeyStore(str(identity.crt)), KeyStore(str(identity.key))), hosts, addresses)
    return list(certificates.judge_certificates(certificates.measure_certificates([use])))


def test_a_certificate_that_expires_in_three_days_is_warned_of(authority):
    [finding] = judged(authority.issue("soon", days=3.5), "localhost")
    assert finding.level is Level.WARNING
    assert "expires in 3 days, at " in finding.text


@pytest.mark.parametrize(("days", "level"), [(90, Level.OK), (20, Level.WARNING), (-1, Level.FAILURE)])
def test_the_end_of_a_certificate_decides(authority, days, level):
    assert levels(judged(authority.issue("broker", days=days))) == [level]


def test_a_certificate_for_another_host_is_warned_of(authority):
    found = judged(authority.issue("other", days=90, hosts=("a.example", "*.b.example")), "x.b.example", "c.example")
    assert levels(found) == [Level.OK, Level.WARNING]
    assert "is not for c.example, but for a.example, *.b.example" in found[1].text


def test_a_key_that_every_user_can_read_is_warned_of(authority):
    identity = authority.issue("exposed", days=90)
    assert levels(judged(identity, key_mode=0o640)) == [Level.OK]
    found = judged(identity, key_mode=0o644)
    assert levels(found) == [Level.OK, Level.WARNING]
    assert found[1].action == f"chmod o-r {identity.key}"


@pytest.mark.parametrize(
    ("names", "host", "expected"),
    [
        (("a.example",), "A.example.", True),
        (("*.example",), "a.example", True),
        (("*.example",), "a.b.example", False),
        (("*.example",), "example", False),
        (("127.0.0.1",), "127.0.0.1", True),
        (("localhost",), "127.0.0.1", False),
    ],
)
def test_names_of_certificates_cover_hosts_as_browsers_have_it(names, host, expected):
    assert covers(names, host) is expected


def test_a_certificate_without_its_key_fails(authority):
    identity, other = authority.issue("one", days=90), authority.issue("two", days=90)
    use = CertificateUse(TlsStores(KeyStore(str(identity.crt)), KeyStore(str(other.key))))
    [finding] = certificates.judge_certificates(certificates.measure_certificates([use]))
    assert finding.level is Level.FAILURE
    assert "is not that of the certificate in" in finding.text


def test_a_server_that_shows_another_certificate_than_its_file_is_warned_of(authority):
    from brokerapp.connections.tls import server_context

    shown, renewed = authority.issue("shown", days=90), authority.issue("renewed", days=90)
    context = server_context(TlsStores(KeyStore(str(shown.pem))))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                accepted, _ = server.accept()
                with accepted:
                    context.wrap_socket(accepted, server_side=True).close()

        serving = threading.Thread(target=serve)
        serving.start()
        address = server.getsockname()
        assert levels(judged(shown, addresses=[address])) == [Level.OK]
        found = judged(renewed, addresses=[address])
        serving.join()
    assert levels(found) == [Level.OK, Level.WARNING]
    assert f"is shown at port {address[1]}." in found[1].text


# -- versions


def test_libraries_are_compared_with_what_is_pinned():
    found = versions.measure_versions()
    assert {"redis", "cryptography"} <= found.pinned.keys()
    assert "pytest" not in found.pinned
    assert levels(versions.judge_python(found)) == [Level.OK]
    other = Versions((3, 12, 0), "0.1.0", {"redis": "8.1.0", "lxml": "6.0"}, {"redis": "5.0.1"})
    [finding] = versions.judge_libraries(other)
    assert (finding.level, "redis 5.0.1 (tested with 8.1.0)" in finding.text) == (Level.WARNING, True)
    assert levels(versions.judge_python(other)) == [Level.FAILURE]


# -- how they are run


def test_a_check_that_hangs_or_fails_does_not_stop_the_others():
    released = threading.Event()

    def hang(_subject):
        released.wait(20)

    def fail(_subject):
        raise RuntimeError("broken")

    def judge(value):
        return [Finding.ok(f"{value}")]

    table = [
        Check("hang", "S", "Hangs", hang, judge, is_timed=True),
        Check("fail", "S", "Fails", fail, judge),
        Check("ok", "S", "Works", lambda subject: subject, judge),
    ]
    results = run_checks(table, "fine", limit=0.2)
    released.set()
    assert [each.level for each in results] == [Level.FAILURE, Level.FAILURE, Level.OK]
    # How long it was waited for: 0.2 s, or longer on a busy machine.
    assert re.fullmatch(r"The check did not answer within \d[\d.]* s\.", results[0].findings[0].text)
    assert results[1].findings[0].text == "The check could not be carried out: RuntimeError: broken."


def test_what_several_checks_judge_is_measured_once_and_times_by_themselves():
    running, most, measured = 0, 0, []
    lock = threading.Lock()

    def measure_for(name):
        def measure(_subject):
            nonlocal running, most
            with lock:
                running += 1
                measured.append((name, running))
            time.sleep(0.05)
            with lock:
                running -= 1

        return measure

    timed, shared = measure_for("timed"), measure_for("shared")
    table = [
        Check("a", "S", "A", shared, lambda _: ()),
        Check("b", "S", "B", shared, lambda _: ()),
        Check("c", "S", "C", timed, lambda _: (), is_timed=True),
    ]
    run_checks(table, None)
    assert measured == [("timed", 1), ("shared", 1)]


def result(level: Level) -> CheckResult:
    return CheckResult("id", "Disk", "Free space", (Finding(level, "Found."),))


def test_only_failures_make_the_exit_code_one():
    assert exit_code([result(Level.OK), result(Level.WARNING), result(Level.SKIPPED)]) == 0
    assert exit_code([result(Level.OK), result(Level.FAILURE)]) == 1
    assert summary([result(Level.WARNING), result(Level.WARNING), result(Level.OK)]) == "0 failures, 2 warnings, 1 OK"


def test_the_report_says_what_was_found_and_what_to_do():
    found = CheckResult("id", "Disk", "Free space", (Finding.warning("Little is left.", "Enlarge it."),))
    assert text_report([found], {"data": "/data", "state": "stopped"}).splitlines() == [
        "data /data, state stopped",
        "",
        "Disk",
        "  Free space          WARNING   Little is left.",
        "                                -> Enlarge it.",
        "",
        "0 failures, 1 warning, 0 OK",
    ]


def test_a_node_of_a_configuration_file_is_checked_without_django(tmp_path, capsys, authority):
    number, identity = free_port(), authority.issue("node", days=3)
    file = tmp_path / "activemq.xml"
    file.write_text(
        f'<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b">'
        f'<sslContext><sslContext keyStore="file:{identity.pem}"/></sslContext><transportConnectors>'
        f'<transportConnector name="secure" uri="stomp+ssl://127.0.0.1:{number}"/></transportConnectors></broker>'
    )
    arguments = ["--config", str(file), "--data", str(tmp_path / "data"), "--json"]
    assert command_line.check(arguments, "sluice check") == 0
    said = json.loads(capsys.readouterr().out)
    by_id = {each["id"]: each for each in said["checks"]}
    assert (said["broker"], said["state"], said["level"]) == ("b", "stopped", "ok")
    assert by_id["ports"]["findings"] == [{"level": "ok", "text": f"Free: {number} (secure).", "action": ""}]
    assert by_id["tls.certificates"]["level"] == "warning"
    assert by_id["store.server"]["level"] == "skipped"
    assert not (tmp_path / "data").exists(), "nothing is made"


def test_a_running_node_on_a_store_elsewhere_is_found_by_its_data_folder(tmp_path, capsys, store_url):
    number, file = free_port(), tmp_path / "activemq.xml"
    file.write_text(
        '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="running"><transportConnectors>'
        f'<transportConnector name="stomp" uri="stomp://127.0.0.1:{number}"/></transportConnectors></broker>'
    )
    options = ["--config", str(file), "--data", os.path.relpath(tmp_path / "data", PROJECT)]
    command = [sys.executable, "manage.py", "runbroker", *options, "--redis", store_url]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as node:
        try:
            assert node.stdout.readline() == b"ready\n"
            command_line.check(["--config", str(file), "--data", str(tmp_path / "data"), "--json"], "sluice check")
        finally:
            node.terminate()
    said = json.loads(capsys.readouterr().out)
    found = {each["id"]: each["findings"][0]["text"] for each in said["checks"]}
    assert said["state"] == "running"
    assert found["ports"] == f"Held by Sluice: {number} (stomp)."
    assert found["versions.nodes"] == f"1 node of Sluice {VERSION}: main."


def test_a_failure_is_the_exit_code_and_wrong_arguments_are_two(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file = tmp_path / "activemq.xml"
        file.write_text(
            '<broker xmlns="http://activemq.apache.org/schema/core"><transportConnectors>'
            f'<transportConnector name="stomp" uri="stomp://127.0.0.1:{taken.getsockname()[1]}"/>'
            "</transportConnectors></broker>"
        )
        assert command_line.check(["--config", str(file), "--data", str(tmp_path / "data")], "sluice check") == 1
    for arguments in (["--config", str(tmp_path / "none"), "--data", str(tmp_path)], ["--config", str(file)]):
        with pytest.raises(SystemExit) as stopped:
            command_line.check(arguments, "sluice check")
        assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "No such file or directory" in said
    assert "--config and --data are needed together" in said


def test_dates_are_judged_by_the_time_of_the_check(authority):
    identity = authority.issue("later", days=90)
    [reading] = certificates.measure_certificates([CertificateUse(TlsStores(KeyStore(str(identity.pem))))])
    early = certificates.CertificateReading(reading.path, datetime.now(UTC) - timedelta(days=60), (), reading.facts)
    assert levels(certificates.judge_certificates([early])) == [Level.FAILURE]
