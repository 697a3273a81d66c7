"""Names of brokerctl's verbs, with former names that still work."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

#: Former names by present name. The audit log, which keeps entries of earlier versions, names verbs by them.
FORMER_NAMES = {
    "resubmit": "retry",
    "scheduled": "waiting",
    "cancel-scheduled": "forget-waiting",
    "reset-groups": "forget-groups",
    "delete-selectors": "forget-selectors",
    "network-diagnosis": "network-why",
}


def add_verb(verbs: Any, verb: str, text: str) -> ArgumentParser:  # argparse has no public type for subparsers
    """Add a verb under its name and its former one, if any."""
    former = FORMER_NAMES.get(verb)
    parser: ArgumentParser = verbs.add_parser(verb, help=text, aliases=[former] if former else [])
    parser.set_defaults(verb=verb)
    return parser
