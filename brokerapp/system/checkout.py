"""Tell a checkout of Sluice from an installed package, and name commands as they are entered in each."""

from __future__ import annotations

from pathlib import Path

#: The folder that has Sluice's packages: a checkout, or the site-packages of an installed wheel.
PROJECT = Path(__file__).resolve().parents[2]
#: Whether it is a checkout, or a copy of one, as in the images.
IS_CHECKOUT = (PROJECT / "manage.py").is_file()
#: Where its packages are installed by `make setup`; an image has them in its one environment.
_PYTHON = ".venv/bin/python" if (PROJECT / ".venv").is_dir() else "python"
#: Verbs of `sluice` that manage.py has under other names: `check` is a command of Django's, the others are older.
_NAMES_OF_MANAGE = {"broker": "runbroker", "ctl": "brokerctl", "check": "checkinstallation"}


def command(verb: str, is_checkout: bool = IS_CHECKOUT) -> str:
    """Return the command for a verb of `sluice`, as an operator enters it: in a checkout through manage.py."""
    return f"{_PYTHON} manage.py {_NAMES_OF_MANAGE.get(verb, verb)}" if is_checkout else f"sluice {verb}"
