"""Test the command `sluice`: its help, its version, and wrong words."""

import pytest

from brokerapp.management import sluice
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
