"""Test `sluice upgrade --data DIR`, for a broker that runs without a console."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from brokerapp.backup.data_folder import write_mark
from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client.continuity import FORMATS
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.redis import RedisStore
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.store.server.append_only_file import newest_file
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.environment import PROJECT
from brokerapp.system.formats import SupportedFormats
from brokerapp.upgrades import store as store_upgrades
from brokerapp.upgrades.command_line import upgrade
from brokerapp.upgrades.plan import FormatStep, Report, plan_steps, steps_from
from brokerapp.upgrades.store import StoreTarget
from brokerapp.version import VERSION

FORMER = PROJECT / "tests/nodes/former/store.tar.xz"
PROGRAM = "sluice upgrade"


@pytest.fixture
def data(tmp_path) -> Path:
    """The data folder of a broker of an early version, which kept no format."""
    with tarfile.open(FORMER) as packed:
        packed.extractall(tmp_path / "store", filter="data")
    DataDirectory(tmp_path).remember("former")
    return tmp_path


def set_format(data: Path, number: int) -> None:
    with EmbeddedStore(data / "store") as store, redis.Redis.from_url(store.url) as client:
        client.hset(StoreKeys("former").state, "format", number)


def test_a_store_of_an_early_version_needs_no_upgrade(data, capsys):
    found = {each: each.read_bytes() for each in data.rglob("*") if each.is_file()}
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Sluice {VERSION}, data folder {data}", "  store  format 1  used as it is", "Nothing to upgrade.",
    ]  # fmt: skip
    assert {each: each.read_bytes() for each in data.rglob("*") if each.is_file()} == found, "a check writes nothing"


@pytest.mark.parametrize(
    ("role", "sentence"), [("incomplete", "was not completely restored"), ("undecided", "--replace")]
)
def test_a_restored_folder_is_not_upgraded_before_it_is_said_what_it_is(data, capsys, role, sentence):
    """Files of the upgrade would keep the restore that was killed from being run again."""
    write_mark(data, RestoredMark(RestoredRole(role), "orders", "mars", "2026-11-28T10:00:00.000+00:00"))
    found = {each: each.read_bytes() for each in data.rglob("*") if each.is_file()}
    for option in ("--check", "--yes"):
        assert upgrade(["--data", str(data), option], PROGRAM) == 1
        assert sentence in capsys.readouterr().err
    assert {each: each.read_bytes() for each in data.rglob("*") if each.is_file()} == found


def test_a_check_after_a_crash_reads_the_store_without_cutting_its_incomplete_end(data, capsys):
    set_format(data, 2)
    with newest_file(data / "store").open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\nk")
    found = newest_file(data / "store").read_bytes()
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 0
    assert "  store  format 2  used as it is" in capsys.readouterr().out.splitlines()
    assert newest_file(data / "store").read_bytes() == found


def test_a_check_of_a_damaged_store_names_the_file_in_the_data_folder(data, capsys):
    set_format(data, 2)
    file = newest_file(data / "store")
    file.write_bytes(b"x" * 3000)
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 1
    assert capsys.readouterr().err.startswith(f"error: the append-only file {file} is damaged at byte 0 of 3000: ")


def test_the_folder_of_an_installation_is_upgraded_with_its_console(tmp_path, capsys):
    (tmp_path / "secret-key").touch()
    assert upgrade(["--data", str(tmp_path)], PROGRAM) == 1
    assert capsys.readouterr().err == (
        f"error: {tmp_path} is of an installation with a console: use SLUICE_DATA={tmp_path} {PROGRAM}\n"
    )


def test_a_store_of_a_newer_version_is_refused_by_the_command_and_by_a_node(data, capsys):
    set_format(data, 3)
    sentence = "the store has format 3, and this version of Sluice supports formats up to 2: use the newer version"
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 1
    assert capsys.readouterr().err.startswith(f"error: {sentence}")
    started = subprocess.run(
        [sys.executable, "manage.py", "runbroker", "--config", "examples/composite-queue.xml", "--data", str(data),
         "--name", "former"],
        cwd=PROJECT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert started.returncode == 1
    assert started.stderr.splitlines()[-1].partition(": ")[2].startswith(sentence)


def test_a_folder_in_which_no_broker_ran_is_named(tmp_path, capsys):
    assert upgrade(["--data", str(tmp_path)], PROGRAM) == 1
    assert capsys.readouterr().err == (
        f"error: no broker was started with --data {tmp_path}: use the --data of a broker\n"
    )


def test_a_broker_that_runs_is_checked_but_not_upgraded(data, capsys):
    with EmbeddedStore(data / "store"):
        assert upgrade(["--data", str(data), "--check"], PROGRAM) == 0
        assert upgrade(["--data", str(data), "--yes", "--no-backup"], PROGRAM) == 1
    assert "the embedded store cannot start" in capsys.readouterr().err


def test_a_store_elsewhere_is_not_upgraded_while_nodes_run_on_it(tmp_path, capsys, monkeypatch):
    async def join(url: str) -> None:
        opened = RedisStore(url, "former")
        await opened.open()
        await opened.nodes.join("session of a", "a")
        await opened.close()

    with EmbeddedStore(tmp_path / "elsewhere") as store:
        asyncio.run(join(store.url))
        DataDirectory(tmp_path).remember("former", store.url)
        monkeypatch.setattr(store_upgrades, "FORMATS", replace(FORMATS, oldest=2))
        monkeypatch.setattr(store_upgrades, "STORE_STEPS", (FormatStep(1, 2, "do something", lambda *_: None),))
        assert upgrade(["--data", str(tmp_path), "--yes", "--no-backup"], PROGRAM) == 1
    assert capsys.readouterr().err == "error: nodes run on the store (a): stop them first\n"


def test_a_step_of_the_table_is_run_on_the_store(data, capsys, monkeypatch):
    def to_format_2(target: StoreTarget, report: Report) -> None:
        report("half of it")
        target.run(lambda store: store.client.execute("HSET", store.keys.state, "format", 2))

    step = FormatStep(1, 2, "do something", to_format_2)
    monkeypatch.setattr(store_upgrades, "FORMATS", replace(FORMATS, oldest=2))
    monkeypatch.setattr(store_upgrades, "STORE_STEPS", (step,))
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 1
    assert upgrade(["--data", str(data), "--yes", "--no-backup", "--verbose"], PROGRAM) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Step 1 of 1: store, format 1 to 2: do something" in lines
    assert "  half of it" in lines
    assert upgrade(["--data", str(data), "--check"], PROGRAM) == 0


def test_a_format_from_which_no_step_leads_to_a_supported_one_is_refused():
    formats = SupportedFormats("the archive", oldest=3, newest=4)
    table = [FormatStep(2, 3, "", lambda *_: None)]
    assert len(plan_steps(formats, 2, table)) == 1
    assert plan_steps(formats, 4, table) == []
    with pytest.raises(ConfigurationRefused, match="has no upgrade to format 3: upgrade with an earlier version first"):
        plan_steps(formats, 1, table)
    with pytest.raises(ConfigurationRefused, match=r"the archive has format 5, .* up to 4"):
        plan_steps(formats, 5, table)


def test_steps_lead_from_format_to_format_in_order():
    table = [FormatStep(number, number + 1, "", lambda *_: None) for number in (3, 1, 2)]
    assert [each.source for each in steps_from(2, table)] == [2, 3]
    assert steps_from(4, table) == []
