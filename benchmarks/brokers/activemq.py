"""ActiveMQ Classic as Debian packages it, with the package's own Java options."""

from __future__ import annotations

from pathlib import Path

from benchmarks.brokers.configuration import broker_xml
from benchmarks.brokers.process import BrokerProcess, StartFailed, free_port
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.rows import Scenario

HOME = Path("/usr/share/activemq")
JAR = HOME / "bin" / "activemq.jar"
#: What ActiveMQ's own distribution has in its lib, and Debian's package does not: advisories over STOMP need it.
JSON_JARS = tuple(Path("/usr/share/java") / jar for jar in ("xstream.jar", "jettison.jar", "xpp3.jar"))
#: What Debian's activemq-options sets.
JAVA_OPTIONS = ("-Xms512M", "-Xmx512M", "-Dorg.apache.activemq.UseDedicatedTaskRunner=true")

_LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n
"""


class ActiveMQ:
    """One ActiveMQ broker with an empty KahaDB, which by default syncs its journal before it answers."""

    name = pace = "activemq"
    title = "ActiveMQ"
    dialect = ActiveMQDialect()
    process: BrokerProcess | None = None
    scheme = "stomp"
    broker = "bench"
    openwire_port: int | None = None

    def start(self, scenario: Scenario, folder: Path, extra: str = "") -> tuple[str, int]:
        """Start it for this scenario, its files in `folder`; answers host and port. Raises StartFailed.

        `extra` is what else its XML file holds.
        """
        if not JAR.exists():
            raise StartFailed(f"{JAR} is not there: apt-get install activemq")
        port = free_port()
        configuration = folder / "activemq.xml"
        configuration.write_text(
            broker_xml(scenario, port, folder / "data", extra, self.scheme, self.broker, self.openwire_port)
        )
        (folder / "lib").mkdir()
        for jar in JSON_JARS:
            (folder / "lib" / jar.name).symlink_to(jar)
        logging = folder / "log4j.properties"
        logging.write_text(_LOGGING)
        command = [
            "java",
            *JAVA_OPTIONS,
            f"-Dlog4j.configuration={logging.as_uri()}",
            f"-Dactivemq.home={HOME}",
            f"-Dactivemq.base={folder}",
            f"-Dactivemq.conf={folder}",
            f"-Dactivemq.data={folder / 'data'}",
            f"-Djava.io.tmpdir={folder}",
            "-jar",
            str(JAR),
            "start",
            f"xbean:{configuration.as_uri()}",
        ]
        self.process = BrokerProcess(command, folder / "activemq.log")
        self.process.wait_until_listening(port)
        return "127.0.0.1", port

    def stop(self) -> None:
        """End it."""
        if self.process:
            self.process.stop()
