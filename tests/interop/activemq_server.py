"""Run ActiveMQ Classic, as Debian packages it, as a process that tests kill and restart on its data."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import psutil
import pytest

from benchmarks.brokers.activemq import HOME, JAR, JSON_JARS
from benchmarks.brokers.process import BrokerProcess, StartFailed
from tests.ports import own_port

#: Ports of a configuration at which it accepts connections.
_CONNECTOR = re.compile(r"<transportConnector\b[^>]*?://127\.0\.0\.1:([1-9]\d*)")
#: `make test` installs it where there is a package.
needs_activemq = pytest.mark.skipif(
    shutil.which("java") is None or not all(each.exists() for each in (JAR, *JSON_JARS)),
    reason="ActiveMQ is not installed: apt-get install activemq libxstream-java libjettison-java",
)
_PLAIN = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
         http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" useJmx="false" {attributes}>{plugins}
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/>{connectors}
    </transportConnectors>
  </broker>
</beans>
"""


class ActiveMQ:
    """One data folder, and the processes that serve it, one after the other."""

    def __init__(self, folder: Path, port: int | None = None, *, heap: str = "256M") -> None:
        self.folder, self.port, self._heap = folder, port or own_port(), heap
        self.openwire_port = own_port()
        self._process: BrokerProcess | None = None

    def uri(self, scheme: str) -> str:
        """Return where it speaks STOMP (stomp), or OpenWire (tcp)."""
        return f"{scheme}://127.0.0.1:{self.port if scheme == 'stomp' else self.openwire_port}"

    def configure(self, text: str) -> None:
        """Write its activemq.xml."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "activemq.xml").write_text(text)

    def plain(self, name: str, connectors: str = "", plugins: str = "", **attributes: str) -> None:
        """Write one with connectors for STOMP and OpenWire, these connectors, plugins and attributes, and no more."""
        connectors = f'\n      <transportConnector name="openwire" uri="{self.uri("tcp")}"/>{connectors}'
        written = " ".join(f'{key}="{value}"' for key, value in attributes.items())
        self.configure(
            _PLAIN.format(name=name, port=self.port, connectors=connectors, plugins=plugins, attributes=written)
        )

    def start(self) -> None:
        """Run it until it accepts connections at all of its connectors; once more if it ended before."""
        try:
            self._start()
        except StartFailed:
            self._start()

    def _start(self) -> None:
        at = self.folder
        (at / "lib").mkdir(exist_ok=True)
        for jar in JSON_JARS:
            if not (link := at / "lib" / jar.name).exists():
                link.symlink_to(jar)
        folders = {"home": HOME, "base": at, "conf": at, "data": at / "data"}
        command = [
            "java", f"-Xmx{self._heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
            *(f"-Dactivemq.{name}={path}" for name, path in folders.items()),
            f"-Dorg.apache.activemq.default.directory.prefix={at}/", f"-Djava.io.tmpdir={at}",
            "-jar", str(JAR), "start", f"xbean:{(at / 'activemq.xml').as_uri()}",
        ]  # fmt: skip
        self._process = BrokerProcess(command, at / "activemq.log")
        for port in map(int, _CONNECTOR.findall((at / "activemq.xml").read_text())):
            self._process.wait_until_listening(port)

    def check(self) -> None:
        """Fail with what it said last unless it runs."""
        assert self._process is not None, "ActiveMQ was not started"
        assert self._process.is_running, f"ActiveMQ ended:\n{(self.folder / 'activemq.log').read_text()[-6000:]}"

    def kill(self) -> None:
        """kill -9."""
        process = psutil.Process(self._process.pid)
        process.kill()
        self.stop()

    def stop(self) -> None:
        """End it cleanly."""
        if self._process is not None:
            self._process.stop()
            self._process = None
