"""The table of checks of a broker: what is measured, and by which rule it is judged."""

from __future__ import annotations

from brokerapp.checks import certificates, disk, ports, restored, store, system, versions
from brokerapp.checks.certificates import CertificateReading
from brokerapp.checks.disk import DiskUse, FsyncTimes
from brokerapp.checks.installation import Installation
from brokerapp.checks.ports import PlainPorts, PortStates
from brokerapp.checks.restored import RestoredReading
from brokerapp.checks.results import Check
from brokerapp.checks.store import StoreReading
from brokerapp.checks.system import SystemLimits
from brokerapp.model.transport_connector import is_loopback
from brokerapp.store.server.embedded import is_answering

NETWORK, DISK, STORE, SYSTEM, TLS, VERSIONS = "Network", "Disk", "Store", "System", "TLS", "Versions"


def _ports(here: Installation) -> PortStates:
    return ports.measure_ports(here.ports, here.data, here.is_running, here.is_starting)


def _plain_ports(here: Installation) -> PlainPorts:
    return PlainPorts(tuple(each for each in here.ports if each.is_plain and not is_loopback(each.host)), here.has_tls)


def _disk(here: Installation) -> DiskUse:
    return disk.measure_disk(here.data)


def _fsync(here: Installation) -> FsyncTimes:
    return disk.measure_fsync(here.data)


def measure_store(here: Installation) -> StoreReading:
    """Read the servers of the store; an embedded one runs only with the installation."""
    if not _may_answer(here):
        return StoreReading(stopped="The embedded store is started with Sluice, which is stopped.")
    return store.measure_store(here.store_url, here.broker, here.replicas)


def _may_answer(here: Installation) -> bool:
    """Return whether the store can be asked: an embedded one that is stopped has no server."""
    return here.store_folder is None or is_answering(here.store_folder) or here.is_running


def _restored(here: Installation) -> RestoredReading:
    return restored.measure_restored(here.data, here.store_url if _may_answer(here) else "", here.broker)


def _system(here: Installation) -> SystemLimits:
    return system.measure_system(here.process, here.has_store)


def _certificates(here: Installation) -> list[CertificateReading]:
    return certificates.measure_certificates(here.certificates)


BROKER_CHECKS: tuple[Check, ...] = (
    Check("ports", NETWORK, "Ports", _ports, ports.judge_ports),
    Check("disk.space", DISK, "Free space", _disk, disk.judge_space),
    Check("disk.inodes", DISK, "Free inodes", _disk, disk.judge_inodes),
    Check("disk.fsync", DISK, "Fsync time", _fsync, disk.judge_fsync, is_timed=True),
    Check("store.server", STORE, "Server", measure_store, store.judge_reachable, is_timed=True),
    Check("store.format", STORE, "Format", measure_store, store.judge_format),
    Check("store.restored", STORE, "Restored backup", _restored, restored.judge_restored),
    Check("store.durability", STORE, "Durability", measure_store, store.judge_durability),
    Check("store.eviction", STORE, "Eviction", measure_store, store.judge_eviction),
    Check("store.memory", STORE, "Memory", measure_store, store.judge_memory),
    Check("store.replicas", STORE, "Replicas", measure_store, store.judge_replicas),
    Check("store.latency", STORE, "Latency", measure_store, store.judge_latency),
    Check("store.clock", STORE, "Clock", measure_store, store.judge_clock),
    Check("system.files", SYSTEM, "Open files", _system, system.judge_files),
    Check("system.overcommit", SYSTEM, "Memory overcommit", _system, system.judge_overcommit),
    Check("system.huge_pages", SYSTEM, "Huge pages", _system, system.judge_huge_pages),
    Check("tls.plain_ports", TLS, "Ports without TLS", _plain_ports, ports.judge_plain),
    Check("tls.certificates", TLS, "Certificates", _certificates, certificates.judge_certificates),
    Check("versions.python", VERSIONS, "Sluice and Python", versions.measure_versions, versions.judge_python),
    Check("versions.libraries", VERSIONS, "Libraries", versions.measure_versions, versions.judge_libraries),
    Check("versions.nodes", VERSIONS, "Nodes", measure_store, versions.judge_nodes),
)
