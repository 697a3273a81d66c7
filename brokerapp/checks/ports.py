"""Ports of an installation: which they are, whether they are free, and who holds them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brokerapp.checks.port_holders import belongs_to, listening_processes, program_of
from brokerapp.checks.results import CHECK_LATER, Finding
from brokerapp.system import extras
from brokerapp.system.environment import Environment


@dataclass(frozen=True, slots=True)
class PortUse:
    """Describe a TCP port of this installation: its use and the variable or option that sets it."""

    number: int
    use: str
    variable: str
    host: str = "127.0.0.1"
    host_setting: str = "SLUICE_BIND"
    is_plain: bool = False  #: whether clients and monitors may sign in there without TLS


_BINDS = ("SLUICE_BIND", "SLUICE_PLAIN_BIND")
#: What ports for clients are called, where not by their scheme.
_USES = {"stomp": "STOMP", "tcp": "OpenWire"}


def port_uses(environment: Environment) -> list[PortUse]:
    """Return every port that the processes of an installation listen on."""
    bind, plain = environment.bind, environment.plain_bind
    plain_setting = _BINDS[plain != bind]
    found = [PortUse(environment.console_port, "the console", "SLUICE_PORT", bind)]
    if environment.console_tls and environment.http_port is not None:
        found.append(PortUse(environment.http_port, "redirection to HTTPS", "SLUICE_HTTP_PORT", bind))
    for scheme, host, number, setting in environment.listeners:
        use, host_setting = _USES.get(scheme, scheme), "SLUICE_BIND" if setting.tls else plain_setting
        found.append(PortUse(number, use, setting.variable, host, host_setting, is_plain=not setting.tls))
    found.append(
        PortUse(environment.monitor_port, "monitoring", "SLUICE_MONITOR_PORT", plain, plain_setting, is_plain=True)
    )
    if _starts_spark(environment):
        found.append(PortUse(environment.spark_port, "Spark", "SLUICE_SPARK_PORT"))
    return found


def _starts_spark(environment: Environment) -> bool:
    return extras.is_installed(extras.ANALYTICS) and not environment.spark_remote


def port_problems(wanted: Sequence[PortUse]) -> Iterator[str]:
    """Yield a sentence for every port that is not available, with the variable to set."""
    users: dict[int, str] = {}
    settings = {each.host: each.host_setting for each in reversed(wanted)}
    wrong_hosts = {host: problem for host, name in settings.items() if (problem := host_problem(host, name))}
    yield from wrong_hosts.values()
    for port in wanted:
        if port.host in wrong_hosts:
            continue
        way_out = f"set {port.variable} to another port"
        if port.number in users:
            yield f"port {port.number} is configured for both {users[port.number]} and {port.use}: {way_out}"
        elif trouble := _why_unavailable(port):
            yield f"port {port.number} on {port.host}, configured for {port.use}, {trouble}: {way_out}"
        users.setdefault(port.number, port.use)


def host_problem(host: str, setting: str) -> str:
    """Return why no port can be opened at an address, which `setting` names; "" where one can."""
    try:
        with socket.socket(_family(host)) as probe:
            probe.bind((host, 0))
    except OSError as error:
        return f"{setting}={host} cannot be used ({error.strerror}): set it to an address of this machine"
    return ""


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


_TAKEN = "is taken"


def _why_unavailable(port: PortUse) -> str:
    """Return why a port cannot be listened on; "" where it can."""
    with socket.socket(_family(port.host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that linger do not count
        try:
            probe.bind((port.host, port.number))
            probe.listen()
        except OSError as error:
            return _TAKEN if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return ""


# -- as a check


@dataclass(frozen=True, slots=True)
class PortState:
    """A port as it was found: why it is not free, and which process listens there; None: it cannot be seen."""

    port: PortUse
    problem: str
    holder: int | None = None
    program: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class PortStates:
    """All ports, whether the installation runs, and whether it was started just now."""

    ports: list[PortState] = field(default_factory=list)
    is_running: bool = False
    is_starting: bool = False


def measure_ports(ports: Sequence[PortUse], data: Path, is_running: bool, is_starting: bool = False) -> PortStates:
    """Return who holds each port. A process is ours that has files in the data directory open, or whose parent has."""
    states = []
    owners: Mapping[int, int] | None = None
    for port in ports:
        problem = _why_unavailable(port) if port.number else ""
        if problem != _TAKEN:
            states.append(PortState(port, problem))
            continue
        owners = listening_processes() if owners is None else owners
        holder = owners.get(port.number)
        states.append(
            PortState(
                port, problem, holder, program_of(holder) if holder else "", bool(holder and belongs_to(holder, data))
            )
        )
    return PortStates(states, is_running, is_starting)


def judge_ports(found: PortStates) -> Iterator[Finding]:
    """Judge whether each port is free while Sluice is stopped, or its own while it runs."""
    ours = [each for each in found.ports if each.is_ours]
    users: dict[int, str] = {}
    for each in found.ports:
        port = each.port
        where = f"Port {port.number} on {port.host} for {port.use}"
        if port.number and port.number in users:
            yield Finding.failure(
                f"Port {port.number} is configured for both {users[port.number]} and {port.use}.",
                f"Set {port.variable} to another port.",
            )
        elif each.problem and each.problem != _TAKEN:
            yield Finding.failure(
                f"{where} {each.problem}.",
                f"Set {port.host_setting} to an address of this machine, or {port.variable} to another port.",
            )
        elif each.problem and not each.is_ours and each.holder is None and found.is_running:
            yield Finding.warning(
                f"{where} is in use. The process cannot be seen by this user.",
                "Check as the user that runs Sluice, or as root, to see whether it is Sluice.",
            )
        elif each.problem and not each.is_ours:
            holder = f"process {each.holder} ({each.program})" if each.holder else "another process"
            yield Finding.failure(f"{where} is held by {holder}.", f"Stop it, or set {port.variable} to another port.")
        users.setdefault(port.number, port.use)
    silent = [each for each in found.ports if not each.problem and each.port.number]
    if silent and found.is_running:
        names = ", ".join(f"{each.port.number} ({each.port.use})" for each in silent)
        if found.is_starting:
            yield Finding.warning(f"Sluice is starting: nothing listens on {names} yet.", CHECK_LATER)
        else:
            yield Finding.failure(f"Sluice runs, but nothing listens on {names}.", "See the logs for the reason.")
    elif silent:
        yield Finding.ok(f"Free: {', '.join(f'{each.port.number} ({each.port.use})' for each in silent)}.")
    if ours:
        yield Finding.ok(f"Held by Sluice: {', '.join(f'{each.port.number} ({each.port.use})' for each in ours)}.")


# -- without TLS


@dataclass(frozen=True, slots=True)
class PlainPorts:
    """The ports without TLS that other machines can reach, and whether TLS is configured."""

    ports: tuple[PortUse, ...]
    has_tls: bool


def judge_plain(found: PlainPorts) -> Iterator[Finding]:
    """Judge whether other machines can send passwords unencrypted where TLS is configured."""
    if not found.has_tls:
        yield Finding.skipped("TLS is not configured.")
    elif found.ports:
        names = ", ".join(f"{each.number} ({each.use})" for each in found.ports)
        settings = " or ".join(dict.fromkeys(each.host_setting for each in found.ports))
        yield Finding.warning(
            f"Other machines can connect without TLS, and send passwords unencrypted: {names}.",
            "Set SLUICE_PLAIN_BIND=127.0.0.1, or leave the variable of a port that is not needed empty."
            if settings in _BINDS
            else f"Set {settings} to 127.0.0.1.",
        )
    else:
        yield Finding.ok("Ports without TLS accept connections from this machine only.")
