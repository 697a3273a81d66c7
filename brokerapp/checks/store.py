"""Check the store: whether its servers answer, keep what they confirm, and have room."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.checks.results import Finding, size_in_words
from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client.continuity import FORMAT_OF_ONE_STORE, FORMATS
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.probe import ServerFacts, probe_server
from brokerapp.store.memory_limits import FULL, SHARE_OF_SERVER
from brokerapp.store.server.durability import durability_loss

#: The oldest versions with functions and WAITAOF.
OLDEST_VALKEY, OLDEST_REDIS = (7, 2), (7, 0)
#: Milliseconds of the median answer above which each receipt is noticeably late.
SLOW_MS = 5.0
#: Milliseconds between clocks above which messages expire at another time than their senders meant, and above which
#: short lifetimes are useless.
CLOCK_WARNING_MS, CLOCK_FAILURE_MS = 1_000.0, 60_000.0


@dataclass(frozen=True, slots=True)
class StoreReading:
    """The servers of the store by shard, and what it holds of nodes; `stopped` says why it is not asked at all."""

    servers: Mapping[int, ServerFacts] = field(default_factory=dict)
    replicas: int = 0  #: that have to confirm what clients get receipts for
    format: int = FORMAT_OF_ONE_STORE
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stopped: str = ""


def measure_store(url: str, broker: str, replicas: int) -> StoreReading:
    """Ask the server of each shard. Nothing is written."""
    keys = StoreKeys(broker)
    first = probe_server(
        url, keys.state, [("HGETALL", keys.shards), ("HGETALL", keys.nodes), ("HGET", keys.state, "format")]
    )
    if first.problem:
        return StoreReading({0: first}, replicas)
    shards, nodes, found_format = first.answers
    others = {int(number): json.loads(text)["url"] for number, text in _pairs(shards)}
    servers = {0: first} | {number: probe_server(each, keys.state) for number, each in sorted(others.items())}
    members = {name.decode(): json.loads(text) for name, text in _pairs(nodes)}
    return StoreReading(servers, replicas, int(found_format or FORMAT_OF_ONE_STORE), members)


def _pairs(found: Any) -> Iterable[tuple[bytes, bytes]]:
    """Return fields and values of a hash, as the driver's versions answer."""
    return found.items() if isinstance(found, Mapping) else zip(found[::2], found[1::2], strict=True)


Judge = Callable[[StoreReading], Iterator[Finding]]


def _of_each_server(judge: Callable[[ServerFacts, StoreReading], Iterator[Finding]]) -> Judge:
    """Return a judgement of all servers from one of a server; those that do not answer are judged once elsewhere."""

    def judge_all(reading: StoreReading) -> Iterator[Finding]:
        if reading.stopped:
            yield Finding.skipped(reading.stopped)
            return
        answering = {number: each for number, each in reading.servers.items() if not each.problem}
        if not answering:
            yield Finding.skipped("The store does not answer.")
        for number, server in answering.items():
            prefix = f"Shard {number}: " if len(reading.servers) > 1 else ""
            for each in judge(server, reading):
                yield Finding(each.level, prefix + each.text, each.action)

    return judge_all


def judge_reachable(reading: StoreReading) -> Iterator[Finding]:
    """Judge whether each server answers, by its version and role."""
    if reading.stopped:
        yield Finding.skipped(reading.stopped)
        return
    for number, server in reading.servers.items():
        prefix = f"Shard {number}" if len(reading.servers) > 1 else "The store"
        if server.problem:
            yield Finding.failure(
                f"{prefix} at {server.url} does not answer: {server.problem}.",
                "Start it, or correct REDIS_URL (--redis of a node).",
            )
            continue
        name, version, oldest = _version(server.info)
        text = f"{prefix} at {server.url} is {name} {version}, {_role(server.info)}"
        if _number(version) < oldest:
            needed = ".".join(map(str, oldest))
            yield Finding.failure(f"{text}: {name} {needed} or later is needed.", f"Install {name} {needed} or later.")
        elif server.info.get("role") != "master":
            yield Finding.failure(f"{text}: it accepts no writes.", "Name the primary, all servers, or Sentinels.")
        elif server.info.get("loading"):
            yield Finding.warning(f"{text}: it is loading its data.", "Wait until it has loaded it.")
        else:
            yield Finding.ok(f"{text}.")


def _version(info: Mapping[str, Any]) -> tuple[str, str, tuple[int, int]]:
    if "valkey_version" in info:
        return "Valkey", str(info["valkey_version"]), OLDEST_VALKEY
    return "Redis", str(info.get("redis_version", "0")), OLDEST_REDIS


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".")[:2] if each.isdecimal())


def _role(info: Mapping[str, Any]) -> str:
    return "primary" if info.get("role") == "master" else "a replica"


def _durability(server: ServerFacts, _reading: StoreReading) -> Iterator[Finding]:
    is_on = bool(server.info.get("aof_enabled"))
    fsync = (server.settings or {}).get("appendfsync", "unknown")
    remedy = "Set appendonly yes and appendfsync always in its configuration."
    if loss := durability_loss({"fsync": fsync if is_on else "off"}):
        text = f"{loss[0].upper()}{loss[1:]}."
        yield Finding.failure(text, remedy) if not is_on else Finding.warning(text, remedy)
    elif server.info.get("aof_last_write_status") != "ok":
        yield Finding.failure(
            "The last write to the append-only file failed: the store accepts no changes.", "See its log and its disk."
        )
    elif server.info.get("aof_last_bgrewrite_status") != "ok":
        yield Finding.warning(
            "The last rewrite of the append-only file failed: the file grows.",
            "See its log: it needs memory for a fork, and disk space for a second file.",
        )
    else:
        yield Finding.ok("Each receipt is sent after an fsync (appendonly yes, appendfsync always).")


def _eviction(server: ServerFacts, _reading: StoreReading) -> Iterator[Finding]:
    policy, limit = str(server.info.get("maxmemory_policy", "")), int(server.info.get("maxmemory", 0))
    remedy = "Set maxmemory-policy noeviction in its configuration."
    if policy == "noeviction":
        yield Finding.ok("Nothing is evicted (maxmemory-policy noeviction).")
    elif not limit:
        yield Finding.warning(f"maxmemory-policy is {policy}: as soon as maxmemory is set, data is evicted.", remedy)
    elif policy.startswith("allkeys"):
        yield Finding.failure(
            f"maxmemory-policy is {policy}: messages are deleted when the memory is full. Nodes do not start on it.",
            remedy,
        )
    else:
        yield Finding.warning(
            f"maxmemory-policy is {policy}: what nodes need to know of each other is deleted when the memory is full.",
            remedy,
        )


def _memory(server: ServerFacts, _reading: StoreReading) -> Iterator[Finding]:
    used, limit = int(server.info.get("used_memory", 0)), int(server.info.get("maxmemory", 0))
    machine = int(server.info.get("total_system_memory", 0))
    bound, name = (limit, "its maxmemory") if limit else (machine, "the memory of its machine")
    share = used / bound if bound else 0.0
    text = f"{size_in_words(used)} used, {share:.0%} of {name} ({size_in_words(bound)})"
    remedy = "Raise it, add a shard, or consume messages." if limit else "Add memory, add a shard, or consume messages."
    if share > FULL:
        yield Finding.failure(f"{text}: no messages are accepted.", remedy)
    elif share > SHARE_OF_SERVER:
        yield Finding.warning(f"{text}: messages may take {SHARE_OF_SERVER:.0%}.", remedy)
    elif limit > machine > 0:
        yield Finding.warning(
            f"maxmemory is {size_in_words(limit)}, and its machine has {size_in_words(machine)}.",
            "Set maxmemory to less than the memory of the machine.",
        )
    else:
        yield Finding.ok(f"{text}.")


def _replicas(server: ServerFacts, reading: StoreReading) -> Iterator[Finding]:
    followers = [each for name, each in server.info.items() if name.startswith("slave") and isinstance(each, dict)]
    online = sum(each.get("state") == "online" for each in followers)
    if not followers and not reading.replicas:
        yield Finding.ok("No replicas, and receipts wait for none.")
        return
    text = f"{online} replica{'s' * (online != 1)} online"
    if online < reading.replicas:
        yield Finding.failure(
            f"{text}, {reading.replicas} must confirm each message: receipts wait.",
            "Start the replicas, or reduce SLUICE_REPLICAS (--replicas of a node).",
        )
    elif online < len(followers):
        behind = len(followers) - online
        yield Finding.warning(f"{text}, {behind} still synchronizing.", "Wait until they have caught up.")
    else:
        yield Finding.ok(f"{text}, {reading.replicas} must confirm each message.")


def _latency(server: ServerFacts, _reading: StoreReading) -> Iterator[Finding]:
    median, slowest = statistics.median(server.latency_ms), max(server.latency_ms)
    text = f"An answer takes {median:.2g} ms, the slowest of {len(server.latency_ms)} took {slowest:.2g} ms"
    if median > SLOW_MS:
        yield Finding.warning(f"{text}.", "Move the store closer to the nodes, and see its SLOWLOG.")
    else:
        yield Finding.ok(f"{text}.")


def _clock(server: ServerFacts, _reading: StoreReading) -> Iterator[Finding]:
    """Judge the difference between the clocks; the time of an answer is the least that is known of it."""
    error = min(server.latency_ms) / 2
    distance = max(0.0, abs(server.clock_ms) - error)
    side = "ahead of" if server.clock_ms > 0 else "behind"
    text = f"The clock of its machine is {_seconds(abs(server.clock_ms))} {side} the clock of this one"
    remedy = "Synchronize both with NTP (chrony or systemd-timesyncd)."
    if distance >= CLOCK_FAILURE_MS:
        yield Finding.failure(f"{text}: messages expire and are scheduled at wrong times.", remedy)
    elif distance >= CLOCK_WARNING_MS:
        yield Finding.warning(f"{text}.", remedy)
    else:
        yield Finding.ok("The clocks of this machine and of the store agree within a second.")


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:,.1f} s"


def judge_format(reading: StoreReading) -> Iterator[Finding]:
    """Judge whether this version of Sluice can use what the store holds."""
    if reading.stopped or all(each.problem for each in reading.servers.values()):
        yield Finding.skipped(reading.stopped or "The store does not answer.")
        return
    try:
        FORMATS.check(reading.format)
    except ConfigurationRefused as refused:
        text = str(refused)
        found, _, remedy = text.partition(": ")
        yield Finding.failure(f"{found[0].upper()}{found[1:]}.", f"{remedy[:1].upper()}{remedy[1:]}.")
    else:
        yield Finding.ok(f"The store has format {reading.format}, which this version supports.")


judge_durability = _of_each_server(_durability)
judge_eviction = _of_each_server(_eviction)
judge_memory = _of_each_server(_memory)
judge_replicas = _of_each_server(_replicas)
judge_latency = _of_each_server(_latency)
judge_clock = _of_each_server(_clock)
