"""The command `sluice`: its verbs, and which function serves each with what is installed."""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple, cast

from brokerapp.errors import RequestRefused
from brokerapp.management.output import write_error, write_line
from brokerapp.system import extras
from brokerapp.version import VERSION

#: Takes arguments and the name of the program in messages, and returns the exit status: 0, 1 failed, 2 wrong usage.
Function = Callable[[list[str], str], int]


class Verb(NamedTuple):
    """A verb: what it does in a line, and the functions that serve it, the best first, as `module:function`."""

    summary: str
    functions: tuple[str, ...]


VERBS = {
    "up": Verb("start broker, console and workers on this machine", ("console.ops.command_line:up",)),
    "broker": Verb("run one broker node from an ActiveMQ XML file", ("brokerapp.management.runbroker:broker",)),
    "ctl": Verb(
        "manage destinations, messages and routing of a running broker",
        ("console.ops.command_line:ctl", "brokerapp.management.brokerctl:ctl"),
    ),
    "check": Verb(
        "check ports, disk, store, certificates and other parts of an installation",
        ("console.checks.command_line:check", "brokerapp.checks.command_line:check"),
    ),
    "backup": Verb(
        "write a backup of a running broker or installation to one file",
        ("console.backups.command_line:backup", "brokerapp.backup.command_line:backup"),
    ),
    "restore": Verb(
        "restore a backup, or say what a restored broker is",
        ("console.backups.command_line:restore", "brokerapp.backup.command_line:restore"),
    ),
    "upgrade": Verb(
        "upgrade store, database and archive of an earlier version",
        ("console.upgrades.command_line:upgrade", "brokerapp.upgrades.command_line:upgrade"),
    ),
    "demo": Verb("run a demo workload against a running broker", ("console.ops.command_line:demo",)),
}
#: The extra that functions of a package need; those of others need none.
EXTRAS = {"console": extras.CONSOLE}
_HELP = frozenset({"-h", "--help"})


def main() -> None:
    """Run the verb named on the command line, and exit with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line without the program's name; return the exit status."""
    if arguments and arguments[0] in VERBS:
        return run_verb(arguments[0], arguments[1:], f"sluice {arguments[0]}")
    parser = ArgumentParser(
        prog="sluice",
        usage="%(prog)s VERB [OPTION...]",
        description="A message broker with an operations console.",
        epilog=_list_verbs(),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    parser.add_argument("verb", metavar="VERB", choices=VERBS, help="what to do, see below")
    if arguments and not arguments[0].startswith("-"):
        from difflib import get_close_matches  # here: most calls do not need it

        near = " or ".join(get_close_matches(arguments[0], VERBS))
        hint = f": did you mean {near}?" if near else "."
        parser.error(f"unknown verb {arguments[0]!r}{hint} Verbs: {', '.join(VERBS)}")
    parser.parse_args(arguments)
    return 2  # not reached: it prints help or version, or reports what is wrong


def run_verb(verb: str, arguments: list[str], program: str) -> int:
    """Run a verb by the best of its functions that is installed; return the exit status."""
    try:
        function = _load(verb, program)
    except RequestRefused as error:
        if _HELP.intersection(arguments):
            write_line(sys.stdout, f"{program}: {VERBS[verb].summary}\n\n{error}")
            return 0
        write_error(error)
        return 1
    try:
        return function(arguments, program)
    except BrokenPipeError:  # who reads the output has enough of it, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered is written at the end
        return 1


def _load(verb: str, program: str) -> Function:
    """Return the function that serves a verb. Raises RequestRefused where the extra of all of them is missing."""
    for path in VERBS[verb].functions:
        module, _, name = path.partition(":")
        extra = EXTRAS.get(module.partition(".")[0])
        if extra is None or extras.is_installed(extra):
            with importing():
                return cast(Function, getattr(import_module(module), name))
    raise RequestRefused(extras.missing(cast(str, extra), f"`{program}` needs"))


@contextmanager
def importing() -> Iterator[None]:
    """Keep the garbage collector out of a block that imports modules.

    They stay to the end, and to look through what they made again and again takes as long as a verb of brokerctl.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _needed(verb: Verb) -> str:
    """Return which extra a verb needs, in brackets; "" where it also runs without."""
    needed = [EXTRAS.get(path.partition(".")[0]) for path in verb.functions]
    return f" (needs the extra {needed[0]!r})" if all(needed) else ""


def _list_verbs() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {name:<{width}}  {verb.summary}{_needed(verb)}" for name, verb in VERBS.items()]
    return "\n".join(["verbs:", *lines, "", "sluice VERB --help describes the options of a verb."])


if __name__ == "__main__":
    main()
