"""Play scenarios of the real Java client against Sluice and against ActiveMQ, and compare what they saw.

`python -m tests.jms.scenarios [NAME...]` plays all, also the long ones that the tests leave out, or those whose names
hold one of these words, and prints what differs. The scenarios are the Java programs in tests/jms/player.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from tests.interop.activemq_server import ActiveMQ
from tests.jms.java_programs import compile_programs, java
from tests.ports import own_port
from tests.runbroker import Run

SOURCES = sorted((Path(__file__).resolve().parent / "player").glob("*.java"))
_SCENARIO = re.compile(r"public static void (\w+)\(Scene ")
#: The classes of scenarios that kill the broker: they have one of their own, and are played one after the other.
_ALONE = ("Restarts",)
#: The class of scenarios that wait for a minute or use much memory.
LONG = "LongRunning"
#: Scenarios that are played at a time: most of them wait.
_AT_A_TIME = 6
#: Seconds for all scenarios on a busy machine.
_PATIENCE = 240
#: What ActiveMQ needs for a message of 50 MB, which it holds several times.
_HEAP = "600M"
_CONFIGURATION = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
         http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="here" useJmx="false" schedulerSupport="true"
          dataDirectory="{data}">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry queue="priority.>" prioritizedMessages="true"/>
    </policyEntries></policyMap></destinationPolicy>
    <plugins>
      <simpleAuthenticationPlugin anonymousAccessAllowed="true"><users>
        <authenticationUser username="ada" password="lovelace" groups="users"/>
      </users></simpleAuthenticationPlugin>
      <statisticsBrokerPlugin/>
    </plugins>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:{openwire}"/>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:{stomp}"/>
      <transportConnector name="narrow" uri="tcp://127.0.0.1:{narrow}?wireFormat.maxFrameSize=100000&amp;allowLinkStealing=true"/>
    </transportConnectors>
  </broker>
</beans>
"""

Answers = Mapping[str, Mapping[str, Any]]


class Server(Protocol):
    """A broker that is started, killed, and started again on its data."""

    def start(self) -> None: ...
    def kill(self) -> None: ...
    def check(self) -> None: ...
    def stop(self) -> object: ...


class Sluice:
    """Sluice as a process of its own."""

    def __init__(self, folder: Path, configuration: str) -> None:
        self._folder, self._run = folder, None
        folder.mkdir()
        (folder / "activemq.xml").write_text(configuration)

    def start(self) -> None:
        """Run it until it listens."""
        self._run = Run("--config", self._folder / "activemq.xml", "--data", self._folder / "data",
                        log=self._folder / "log")  # fmt: skip
        self._run.ready()

    def kill(self) -> None:
        """kill -9."""
        self._run.kill()

    def check(self) -> None:
        """Fail with what it said last unless it runs."""
        assert self._run is not None, "Sluice was not started"
        assert self._run.is_alive, f"Sluice ended:\n{self._run.errors()[-6000:]}"

    def stop(self) -> None:
        """End it cleanly."""
        if self._run is not None:
            self._run.stop()


def _activemq(folder: Path, configuration: str) -> ActiveMQ:
    server = ActiveMQ(folder, int(re.search(r"stomp://127.0.0.1:(\d+)", configuration)[1]), heap=_HEAP)
    server.configure(configuration)
    return server


#: How each is made, by its name.
SERVERS: Mapping[str, Callable[[Path, str], Server]] = {"sluice": Sluice, "activemq": _activemq}


def scenario_names() -> list[str]:
    """Return CLASS.METHOD of all scenarios."""
    return [f"{each.stem}.{name}" for each in SOURCES for name in _SCENARIO.findall(each.read_text())]


def play(kind: str, scenarios: Sequence[str], classes: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Play scenarios against a broker of this kind, started for them in a new folder; what they saw by name."""
    alone = [each for each in scenarios if each.startswith(_ALONE)]
    together = [each for each in scenarios if each not in alone]
    with ThreadPoolExecutor() as pool:
        parts = [
            pool.submit(_play_part, kind, part, count, classes, folder / f"{kind}-{count}")
            for part, count in ((together, _AT_A_TIME), (alone, 1))
            if part
        ]
        return {name: notes for part in parts for name, notes in part.result().items()}


def _play_part(kind: str, scenarios: Sequence[str], count: int, classes: Path, folder: Path) -> dict[str, Any]:
    ports = {each: own_port() for each in ("openwire", "stomp", "narrow")}
    server = SERVERS[kind](folder, _CONFIGURATION.format(data=folder / "data", **ports))
    with ExitStack() as stack:
        stack.callback(server.stop)
        server.start()
        errors = stack.enter_context((folder / "player.log").open("w"))
        player = subprocess.Popen(
            java("Player", classes, *map(str, ports.values()), str(count), *scenarios),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        stack.callback(player.wait)
        stack.callback(player.kill)
        timer = threading.Timer(_PATIENCE, player.kill)
        stack.callback(timer.cancel)
        timer.start()
        found = {}
        for line in player.stdout:
            if line.startswith("@"):
                getattr(server, line[1:].strip())()
                player.stdin.write("done\n")
                player.stdin.flush()
            else:
                answer = json.loads(line)
                found[answer["name"]] = answer["notes"]
        player.stdin.close()
        player.stdout.close()
        server.check()  # else all that was played last failed for the same reason
        return found


def play_all(scenarios: Sequence[str], folder: Path, kinds: Sequence[str] = tuple(SERVERS)) -> dict[str, Answers]:
    """Play scenarios against both brokers at the same time; what they saw by broker and name."""
    classes = compile_programs(*SOURCES)
    with ThreadPoolExecutor() as pool:
        plays = {kind: pool.submit(play, kind, scenarios, classes, folder) for kind in kinds}
        return {kind: each.result() for kind, each in plays.items()}


def main() -> int:
    """Play and print; 0 when nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.jms.scenarios", description=__doc__)
    parser.add_argument("names", nargs="*", help="words that are part of the scenarios' names")
    parser.add_argument("--all", action="store_true", help="print what was equal, too")
    asked = parser.parse_args()
    chosen = [each for each in scenario_names() if not asked.names or any(word in each for word in asked.names)]
    with tempfile.TemporaryDirectory(prefix="jms-") as folder:
        found = play_all(chosen, Path(folder))
        different = 0
        for name in chosen:
            answers = {kind: answer.get(name, {"failed": "not played"}) for kind, answer in found.items()}
            equal = len({json.dumps(each, sort_keys=True) for each in answers.values()}) == 1
            different += not equal
            _say(f"{'equal' if equal else 'DIFFERS'} {name}")
            if not equal or asked.all:
                for kind, answer in answers.items():
                    _say(f"   {kind:9} {json.dumps(answer)}")
        if different:
            for log in sorted(Path(folder).glob("sluice-*/*log")):
                _say(f"--- {log.parent.name}/{log.name}\n{log.read_text()[-6000:]}")
    _say(f"{len(chosen)} scenarios, {different} different")
    return 1 if different else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
