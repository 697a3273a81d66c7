"""Current hours of tables: `python -m benchmarks.analytics.table_stream` measures how far streaming is behind.

It records messages at a steady rate, as a node and the archiver do, while the supervised process counts them in a Spark
server of its own. Each second it reads how far the rows are behind, as the console shows it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import redis

from analytics.tables.status import current_hours_status
from benchmarks.analytics import server
from brokerapp.model.message import Message
from brokerapp.store.client.keys import trace_key
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.environment import Environment
from brokerapp.tracing.depths import DepthRecorder
from brokerapp.tracing.recorder import TraceRecorder
from brokerapp.tracing.schema import ACK, DEAD_LETTER, DISPATCH, FORWARD

SECONDS, RATE = 180, 1_000
#: Seconds that do not count: Spark compiles its first queries.
WARM_UP = 120
QUEUES, CONSUMERS = 200, 3
#: One message in so many fails.
FAILING = 500
#: Seconds that the rows may be behind.
LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Records the messages of a second, of queues that get less and less."""

    recorder: TraceRecorder
    depths: DepthRecorder
    rate: int

    def record(self, second: int, now_us: int) -> None:
        """Record what happens to a second's messages."""
        for number in range(second * self.rate, (second + 1) * self.rate):
            queue = f"queue://orders.{int(QUEUES * (number * 0.6180339887 % 1) ** 3)}"
            born = now_us + (number % self.rate) * 900_000 // self.rate
            client, head = f"billing-{number % CONSUMERS}", f"message-id:ID\\csluice-1\\c{number}\nregion:eu\n".encode()
            each = Message(f"ID:sluice-1:{number}", head, b"x" * (100 + number % 900), True, born_us=born)
            self.recorder.record_enqueue(born, (each,), queue)
            self.recorder.record_one(FORWARD, born, each, queue, queue, None, None)
            self.recorder.record_one(DISPATCH, born + 200, each, queue, queue, client, None)
            if number % FAILING:
                self.recorder.record_one(ACK, born + 3_000 + number % 7_000, each, queue, queue, client, None)
            else:
                why = f"IllegalStateException: order {number} is closed"
                self.recorder.record_one(DEAD_LETTER, born + 9_000, each, queue, queue, client, why)
        if self.depths.is_due(now_us):
            self.depths.record(now_us, {f"queue://orders.{each}": 1 + (second + each) % 50 for each in range(QUEUES)})


def main() -> int:
    """Measure and print; 1 when the rows were ever too far behind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.analytics.table_stream", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=RATE, help="messages a second (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EmbeddedStore(folder / "store") as store, server.running(folder / "data") as (found, pid):
            environment = replace(found, redis_url=store.url, streams_tables=True)
            return _measure(environment, pid, arguments.seconds, arguments.rate)


def _measure(environment: Environment, pid: int, seconds: int, rate: int) -> int:
    variables = {
        **os.environ, "SLUICE_DATA": str(environment.data), "REDIS_URL": environment.redis_url,
        "SLUICE_BROKER": environment.broker_name, "SLUICE_SPARK_PORT": str(environment.spark_port),
    }  # fmt: skip
    modules = ("analytics.archive.archiver", "analytics.spark.tables.stream")
    processes = [subprocess.Popen([sys.executable, "-m", each], env=variables) for each in modules]
    recorder, behind, began = TraceRecorder(environment.broker_name), [], time.monotonic()
    traffic, spark, used = Traffic(recorder, DepthRecorder(recorder), rate), psutil.Process(pid), 0.0
    try:
        with redis.Redis.from_url(environment.redis_url) as client:
            for second in range(WARM_UP + seconds):
                traffic.record(second, time.time_ns() // 1000 - 1_000_000)
                while batch := recorder.take_encoded():
                    client.xadd(trace_key(environment.broker_name), {"b": batch[0], "n": batch[1]})
                status = current_hours_status(environment, time.time_ns() // 1000)
                if second == WARM_UP:
                    used = _cpu(spark) + _cpu(psutil.Process(processes[1].pid))
                if second >= WARM_UP and status is not None and status.behind_seconds is not None:
                    behind.append(status.behind_seconds + 1)  # the events of an entry are up to a second older
                time.sleep(max(0.0, began + second + 1 - time.monotonic()))
        used = _cpu(spark) + _cpu(psutil.Process(processes[1].pid)) - used
    finally:
        for each in processes:
            each.terminate()
            each.wait(server.PATIENCE)
    print(
        f"{rate:,} messages/s, {4 * rate:,} events/s in {QUEUES} queues for {seconds} s; load {os.getloadavg()[1]:.1f}"
    )
    print(f"behind: median {statistics.median(behind):.0f} s, at most {max(behind):.0f} s ({LIMIT:.0f} allowed)")
    print(
        f"CPU of Spark and its client: {used / seconds:.1%} of a core, {used / (4 * rate * seconds) * 1e6:.1f} us/event"
    )
    print(f"memory: Spark {_megabytes(spark):,.0f} MB with its Python processes")
    return 0 if len(behind) >= seconds * 0.9 and max(behind) <= LIMIT else 1


def _cpu(process: psutil.Process) -> float:
    """CPU seconds of a process and all that it started."""
    found = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in found) + sum(process.cpu_times()[2:4])


def _megabytes(process: psutil.Process) -> float:
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True))) / 1e6


if __name__ == "__main__":
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", flush=True)
    sys.exit(main())
