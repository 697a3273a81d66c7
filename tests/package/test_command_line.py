"""Test the command `sluice`: its help, its version, and wrong words."""

import subprocess
import sys
from venv import EnvBuilder

import pytest

from brokerapp.management import sluice
from brokerapp.system.environment import PROJECT
from brokerapp.version import VERSION


def ends(*arguments):
    """The status with which a command line ends."""
    with pytest.raises(SystemExit) as end:
        raise SystemExit(sluice.run(list(arguments)))
    return end.value.code


def test_the_help_lists_every_verb_with_what_it_does(capsys):
    assert ends("--help") == 0
    said = capsys.readouterr().out
    for name, verb in sluice.VERBS.items():
        assert f"  {name:<{max(map(len, sluice.VERBS))}}  {verb.summary}" in said
    assert said.count("(needs the extra 'console')\n") == 2


def test_the_version_is_told(capsys):
    assert ends("--version") == 0
    assert capsys.readouterr().out == f"sluice {VERSION}\n"


@pytest.mark.parametrize("verb", sluice.VERBS)
def test_each_verb_describes_its_options(capsys, verb):
    assert ends(verb, "--help") == 0
    assert capsys.readouterr().out.startswith(f"usage: sluice {verb} ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required: VERB"),
        (("chek",), "unknown verb 'chek': did you mean check? Verbs: up, broker,"),
        (("ctl", "purg"), "unknown command 'purg': did you mean purge?"),
        (("broker",), "the following arguments are required: --config, --data"),
        (("up", "--fast"), "unrecognized arguments: --fast"),
    ],
)
def test_wrong_words_are_named_and_end_with_status_2(capsys, arguments, said):
    assert ends(*arguments) == 2
    assert said in capsys.readouterr().err


def test_manage_py_alone_lists_the_commands_of_sluice_before_those_of_django():
    said = subprocess.run([sys.executable, PROJECT / "manage.py"], capture_output=True, text=True, timeout=120).stdout
    own, _, all_commands = said.partition("All commands, with Django's:")
    assert [line.split()[0] for line in own.splitlines() if line.startswith("  ")] == [
        "up", "demo", "runbroker", "brokerctl", "backup", "restore", "upgrade", "checkinstallation",
    ]  # fmt: skip
    assert "    migrate\n" in all_commands


@pytest.mark.parametrize("command", ["migrate", "runbroker"])
def test_manage_py_says_what_to_run_where_packages_are_missing(tmp_path, command):
    EnvBuilder(symlinks=True).create(tmp_path)
    done = subprocess.run(
        [tmp_path / "bin/python", PROJECT / "manage.py", command], capture_output=True, text=True, timeout=60
    )
    said = "error: Sluice's packages are missing here: run make setup, then .venv/bin/python manage.py\n"
    assert (done.returncode, done.stderr) == (1, said)
