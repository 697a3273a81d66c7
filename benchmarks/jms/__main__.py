"""Command line: `python -m benchmarks.jms` measures both brokers in turn with the real Java client, and prints."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.brokers.activemq import ActiveMQ
from benchmarks.brokers.process import StartFailed
from benchmarks.brokers.sluice import Sluice
from benchmarks.comparison.document import Record
from benchmarks.comparison.report import table
from benchmarks.jms.codec_cost import codec_cost
from benchmarks.jms.rows import ROWS, JmsRow
from benchmarks.scenarios.rows import QUEUE_SCENARIO

PROGRAM = Path(__file__).with_name("JmsLoad.java")
JARS = ":".join(
    f"/usr/share/java/{name}.jar"
    for name in (
        "activemq-client", "geronimo-jms_1.1_spec", "geronimo-j2ee-management-1.1-spec", "hawtbuf", "slf4j-api",
        "slf4j-nop",
    )
)  # fmt: skip
PEERS = (ActiveMQ, Sluice)
HEAD = ("row", "broker", "deliveries/s", "CPU of a delivery", "of it the store", "client CPU", "× ActiveMQ", "bar")


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    deliveries: int
    seconds: float
    client_cpu: float
    broker_cpu: float
    store_cpu: float

    def per_delivery(self, seconds: float) -> str:
        """Return microseconds for each delivery, as text."""
        return f"{seconds / self.deliveries * 1e6:.1f} us"


class RunFailed(Exception):
    """A message was lost or came twice, or the client failed."""


class Client:
    """The Java program, connected to one broker."""

    def __init__(self, classes: Path, port: int, row: JmsRow) -> None:
        command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{classes}:{JARS}", "JmsLoad"]
        command += [f"tcp://127.0.0.1:{port}", *row.arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def send(self, messages: int) -> dict[str, float]:
        """Send and consume so many messages. Raises RunFailed where the ledger is not right."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{messages}\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._line())
        if "failure" in answer or answer["missing"] or answer["doubled"]:
            raise RunFailed(str(answer))
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RunFailed("the Java client ended: why stands above")
        return line

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def joined(peer: ActiveMQ | Sluice, row: JmsRow, classes: Path) -> Iterator[Client]:
    """A broker that listens for OpenWire, and the client that is connected to it."""
    peer.scheme = "tcp"
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-jms-{peer.name}-"))
        stack.callback(peer.stop)
        _, port = peer.start(QUEUE_SCENARIO, Path(folder))
        client = Client(classes, port, row)
        stack.callback(client.stop)
        yield client


def measured(peer: ActiveMQ | Sluice, client: Client, messages: int) -> Run:
    """Measure one run. Raises RunFailed."""
    assert peer.process is not None
    before = peer.process.usage()
    answer = client.send(messages)
    after = peer.process.usage()
    return Run(
        int(answer["deliveries"]), answer["seconds"], answer["cpu"], after.cpu_seconds - before.cpu_seconds,
        after.store_cpu_seconds - before.store_cpu_seconds,
    )  # fmt: skip


def compare(
    row: JmsRow, peers: Sequence[type[ActiveMQ] | type[Sluice]], rounds: int, scale: float, classes: Path
) -> list[tuple[str, ...]]:
    """Return the rows of the table for one row of the benchmark. Raises RunFailed and StartFailed."""
    messages = int(row.messages * scale)
    found: dict[str, list[Run]] = {}
    with ExitStack() as stack:
        running = [(peer, stack.enter_context(joined(peer, row, classes))) for peer in (each() for each in peers)]
        for _, client in running:
            client.send(messages)  # warms both up
        for _ in range(rounds):
            for peer, client in running:
                found.setdefault(peer.name, []).append(measured(peer, client, messages))
    rates = {name: median(each.deliveries / each.seconds for each in runs) for name, runs in found.items()}
    lines = []
    for name, runs in found.items():
        middle = sorted(runs, key=lambda each: each.broker_cpu)[len(runs) // 2]
        ratio = rates[name] / rates[ActiveMQ.name] if name == Sluice.name and ActiveMQ.name in rates else None
        lines.append(
            (
                row.name, name, f"{rates[name]:,.0f}", middle.per_delivery(middle.broker_cpu),
                middle.per_delivery(middle.store_cpu) if middle.store_cpu else "",
                middle.per_delivery(middle.client_cpu), "" if ratio is None else f"{ratio:.1f}",
                "" if ratio is None else f"{row.bar:g} {'reached' if ratio >= row.bar else 'missed'}",
            )
        )  # fmt: skip
    return lines


def main() -> int:
    """Measure and print; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jms", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in ROWS], default=[each.name for each in ROWS])
    parser.add_argument(
        "--peers", nargs="+", choices=[each.name for each in PEERS], default=[each.name for each in PEERS]
    )
    parser.add_argument("--rounds", type=int, default=3, help="measured runs, whose median counts")
    parser.add_argument("--scale", type=float, default=1, help="share of the messages that is sent")
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the brokers end with this program
    record, failures, lines = Record("jms"), [], []
    with tempfile.TemporaryDirectory(prefix="bench-jms-") as classes:
        subprocess.run(["javac", "-d", classes, "-cp", JARS, str(PROGRAM)], check=True)
        for row in (each for each in ROWS if each.name in asked.only):
            peers = [each for each in PEERS if each.name in asked.peers]
            try:
                lines += compare(row, peers, asked.rounds, asked.scale, Path(classes))
            except (RunFailed, StartFailed) as error:
                failures.append(f"{row.name}: {error}")
    costs = codec_cost()
    text = (
        table(HEAD, lines)
        + "\n\nCPU of the codec for a message: "
        + ", ".join(f"{name} {cost:.1f} us" for name, cost in costs.items())
        + f"; together {sum(costs.values()):.1f} us."
    )
    print(text)
    if asked.record:
        record.write(f"{record.conditions()}\n\n{text}")
    for each in failures:
        print(f"FAILED {each}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
