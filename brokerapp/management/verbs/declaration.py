"""What brokerctl's verbs have in common: how they are declared, and what they return."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction
from typing import TypeAlias

from brokerapp.model import JsonValue

#: Result of a verb: as JSON, and as lines for a terminal.
Answer = tuple[JsonValue, list[str]]
#: What `ArgumentParser.add_subparsers` returns, for which argparse has no public name.
Subparsers: TypeAlias = "_SubParsersAction[ArgumentParser]"

#: Former names by present name. The audit log, which keeps entries of earlier versions, names verbs by them.
FORMER_NAMES = {
    "resubmit": "retry",
    "scheduled": "waiting",
    "cancel-scheduled": "forget-waiting",
    "reset-groups": "forget-groups",
    "delete-selectors": "forget-selectors",
    "network-diagnosis": "network-why",
}

#: Messages shown when nobody says how many.
BROWSE_LIMIT = 50


def add_verb(verbs: Subparsers, verb: str, text: str) -> ArgumentParser:
    """Add a verb under its name and its former one, if any."""
    former = FORMER_NAMES.get(verb)
    parser = verbs.add_parser(verb, help=text, aliases=[former] if former else [])
    parser.set_defaults(verb=verb)
    return parser
