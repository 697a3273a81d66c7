"""`sluice check` of a broker alone: run the checks and print what they found."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from brokerapp.checks import runner
from brokerapp.checks.installation import Installation, described, of_configuration, of_environment
from brokerapp.checks.report import json_report, text_report
from brokerapp.checks.results import Check, exit_code
from brokerapp.checks.runner import read_within_limit, run_checks
from brokerapp.checks.table import BROKER_CHECKS
from brokerapp.config import read_config
from brokerapp.errors import BrokerError, ConfigurationRefused
from brokerapp.system.environment import Environment, default_data_directory
from brokerapp.system.store_address import check_replicas, check_store_url

S = TypeVar("S")

_DESCRIPTION = (
    "Check an installation, running or stopped. Nothing is changed. The exit code is 1 when a check failed, and 0 with "
    "warnings alone."
)


def check(arguments: list[str], program: str) -> int:
    """Check a node of a configuration file, or the installation of the environment variables; return the exit code."""
    parser = argument_parser(program)
    parser.add_argument("--config", type=Path, help="ActiveMQ XML file of a node (default: environment variables)")
    parser.add_argument("--data", type=Path, help="data folder of the node")
    parser.add_argument("--redis", help="URL of the store of the node (default: the one in the data folder)")
    parser.add_argument("--replicas", type=int, default=0, help="replicas that confirm what the node writes")
    options = parser.parse_args(arguments)
    if (options.config is None) != (options.data is None):
        parser.error("--config and --data are needed together")
    try:
        here = answered(_installation, options, options.data)
    except (BrokerError, OSError) as error:
        parser.error(str(error))
    return report(BROKER_CHECKS, here, as_json=options.json)


def argument_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of what all kinds of installations have in common."""
    parser = argparse.ArgumentParser(prog=program, description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def answered(read: Callable[[S], Installation], subject: S, data: Path | None = None) -> Installation:
    """Read what is to be checked from a subject; `data` None: as environment variables say.

    Raises ConfigurationRefused where the data folder does not answer, as a mounted disk may.
    """
    try:
        return read_within_limit(read, subject)
    except TimeoutError:
        folder = data or os.environ.get("SLUICE_DATA") or default_data_directory(os.environ)
        raise ConfigurationRefused(
            f"{folder} did not answer within {runner.LIMIT_SECONDS:g} s: look for a disk that does not answer"
        ) from None


def _installation(options: argparse.Namespace) -> Installation:
    if options.config is None:
        return of_environment(Environment.read())
    if options.redis:
        check_store_url(options.redis)
    check_replicas(options.replicas, options.redis)
    data = options.data.resolve()
    config = read_config(options.config, {"activemq.data": str(data)})
    return of_configuration(config, data, options.redis, options.replicas)


def report(
    checks: Sequence[Check], here: Installation, *, as_json: bool, write: Callable[[str], object] = print
) -> int:
    """Run these checks, print what they found, and return the exit code."""
    results = run_checks(checks, here)
    about = described(here)
    write(json.dumps(json_report(results, about), indent=2) if as_json else text_report(results, about))
    return exit_code(results)
