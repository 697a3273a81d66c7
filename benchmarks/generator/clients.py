"""Clients: runs a scenario by the client that it names."""

from __future__ import annotations

from benchmarks.generator import browse, load, stomp_py
from benchmarks.generator.load import Outcome
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import Dialect
from benchmarks.scenarios.rows import Client

_RUNS = {Client.GENERATOR: load.run, Client.STOMP_PY: stomp_py.run_stomp_py, Client.BROWSER: browse.run_browsed}


def prepare(traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int) -> None:
    """Do what a run needs done before its clock starts."""
    if traffic.scenario.client is Client.BROWSER:
        browse.fill(traffic, address, dialect, messages)


def run(traffic: Traffic, address: tuple[str, int], dialect: Dialect, messages: int) -> Outcome:
    """Send so many messages and consume them. Raises RunFailed."""
    return _RUNS[traffic.scenario.client](traffic, address, dialect, messages)
