"""`sluice check` of an installation with a console: run all checks and print what they found."""

from __future__ import annotations

import os
from collections.abc import Mapping

from brokerapp.checks.command_line import answered, argument_parser, report
from brokerapp.checks.command_line import check as check_node
from brokerapp.checks.installation import Installation, of_environment
from brokerapp.errors import BrokerError
from brokerapp.management.output import write_error
from brokerapp.system.data_directory import check_data_directory
from brokerapp.system.environment import Environment
from console.checks.table import INSTALLATION_CHECKS
from console.ops.database_settings import databases

#: The option by which a node of a configuration file is meant, which has no console.
_OF_A_NODE = "--config"


def check(arguments: list[str], program: str) -> int:
    """Check the installation of the environment variables, or a node of a file (--config); return the exit code."""
    if any(each.partition("=")[0] == _OF_A_NODE for each in arguments):
        return check_node(arguments, program)
    parser = argument_parser(program)
    parser.epilog = f"{_OF_A_NODE} FILE --data FOLDER [--redis URL] [--replicas N] checks a node without a console."
    options = parser.parse_args(arguments)
    try:
        here = answered(_installation, os.environ)
    except BrokerError as error:
        write_error(error)
        return 1
    if here.data.exists():  # else there is nothing that these checks could read
        import django
        from django.core.exceptions import ImproperlyConfigured

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
        try:
            django.setup()
        except ImproperlyConfigured as error:  # a variable that the settings cannot use
            write_error(error)
            return 1
    return report(INSTALLATION_CHECKS, here, as_json=options.json)


def _installation(variables: Mapping[str, str]) -> Installation:
    environment = Environment.read(variables)
    here = of_environment(environment)
    check_data_directory(here.data)
    databases(environment.database_url)  # refuses what is none
    return here
