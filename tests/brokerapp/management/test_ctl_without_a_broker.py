"""Test what `sluice ctl` says where no broker runs."""

import pytest

from brokerapp.management import brokerctl
from brokerapp.system.checkout import command
from tests.ports import free_port


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """The data folder of a `sluice up` that is stopped."""
    (tmp_path / "secret-key").touch()
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("SLUICE_DATA", str(tmp_path))
    return tmp_path


def said(capsys, *arguments: str) -> str:
    assert brokerctl.ctl(["destinations", *arguments], "sluice ctl") == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("is_named", [False, True], ids=["by its variable", "by --data"])
def test_an_installation_that_is_stopped_is_named_with_the_way_to_start_it(installation, is_named, capsys):
    assert said(capsys, *(["--data", str(installation)] if is_named else [])) == (
        f"error: no broker runs in {installation}: start it with `{command('up')}` (or `{command('broker')}`), "
        "or name --data or --redis\n"
    )


def test_the_folder_of_another_installation_is_refused_with_the_variable_to_set(installation, monkeypatch, capsys):
    monkeypatch.setenv("SLUICE_DATA", str(installation / "other"))
    assert said(capsys, "--data", str(installation)) == (
        f"error: {installation} is the folder of `{command('up')}`: set SLUICE_DATA to it instead of --data\n"
    )


def test_a_store_that_nobody_serves_is_named_without_its_password(installation, capsys):
    port = free_port()
    assert said(capsys, "--redis", f"redis://:secret@127.0.0.1:{port}") == (
        f"error: the store at redis://***@127.0.0.1:{port} does not answer: connection refused\n"
    )
