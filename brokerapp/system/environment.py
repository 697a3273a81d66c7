"""Environment: where an installation keeps its data and which ports and servers it uses, read from the environment
once.

Every variable has a default, so that nothing needs to be set; two installations differ in SLUICE_DATA and the ports.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.checkout import IS_CHECKOUT, PROJECT
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.secret_variables import with_secrets
from brokerapp.system.store_address import check_replicas, check_store_url


class PortSetting(NamedTuple):
    """How a port for clients is set: its variable, its number without that (None: not served), whether it has TLS."""

    variable: str
    default: int | None = None
    tls: bool = False


#: Ports for clients of the broker, by the scheme that is served there.
CLIENT_PORTS = {
    "stomp": PortSetting("SLUICE_STOMP_PORT", 61613),
    "tcp": PortSetting("SLUICE_OPENWIRE_PORT", 61616),
    "stomp+ssl": PortSetting("SLUICE_STOMP_SSL_PORT", tls=True),
    "ws": PortSetting("SLUICE_WS_PORT"),
    "wss": PortSetting("SLUICE_WSS_PORT", tls=True),
    "ssl": PortSetting("SLUICE_OPENWIRE_SSL_PORT", tls=True),
}


class ClientPort(NamedTuple):
    """A port on which the broker of an installation listens: its scheme, address and number, how it is set."""

    scheme: str
    host: str
    number: int
    setting: PortSetting


#: Properties that messages of many businesses have, and are asked for by.
INDEXED = "order,orderId,order-id,customer,invoice"

#: For how long, and up to how much, recorded traffic is kept: a month, at 5 bytes an event four billion events.
ARCHIVE_DAYS, ARCHIVE_GIGABYTES = 31, 20
#: Retention of tables of measures in days: a quarter by the hour, five years by the day, as of rollups.
HOURLY_TABLE_DAYS, DAILY_TABLE_DAYS = 93, 1830
_GIGABYTE = 10**9

#: Seconds for which browsers reach the host of the console over TLS only: a year, as is common.
HSTS_SECONDS = 365 * 24 * 60 * 60

#: Names of this machine that no other has.
_LOCAL = frozenset({"127.0.0.1", "::1", "[::1]", "localhost"})


@dataclass(frozen=True, slots=True)
class Environment:
    """One installation. Paths are absolute; ports are TCP ports on `bind`, or `plain_bind`."""

    data: Path
    bind: str
    #: Where ports listen that clients and monitors may use without TLS; not the console's.
    plain_bind: str
    console_port: int
    client_ports: Mapping[str, int]  #: by scheme, see CLIENT_PORTS: only those that are served
    monitor_port: int
    spark_port: int
    broker_name: str
    redis_url: str = field(repr=False)
    database_url: str = field(repr=False)
    spark_master: str
    replicas: int = 0  #: of the store that confirm what clients get receipts for
    #: The files with the certificate (PKCS12 or PEM) that ports with TLS need.
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_password: str | None = field(default=None, repr=False)
    #: Whether the console has that certificate, too; a port that redirects to it; how long browsers remember that.
    console_tls: bool = False
    http_port: int | None = None
    hsts_seconds: int = HSTS_SECONDS
    #: The brokers of a cluster, `W=tcp://host:port,X=...`, its master, and by whom they log in to each other.
    cluster: str = ""
    cluster_master: str = ""
    cluster_user: str | None = None
    cluster_password: str | None = field(default=None, repr=False)
    #: Properties by whose values recorded messages can be found.
    indexed: tuple[str, ...] = ("correlation-id",)
    #: Addresses and networks of proxies before the console, comma separated: what they say of a browser is believed.
    proxies: str = ""
    #: Days for which the audit trail is kept; 0: for ever.
    audit_days: int = 0
    #: A Spark Connect server elsewhere, as `sc://host:port/;token=...`: analyses run there, and none is started here.
    spark_remote: str = field(default="", repr=False)
    #: Days for which recorded traffic is kept, and bytes that it may take; 0: for ever, any number.
    archive_days: float = ARCHIVE_DAYS
    archive_bytes: int = ARCHIVE_GIGABYTES * _GIGABYTE
    #: Days for which hourly and daily tables of measures are kept; 0: unlimited.
    hourly_table_days: float = HOURLY_TABLE_DAYS
    daily_table_days: float = DAILY_TABLE_DAYS
    #: Days for which results of analyses are kept that nobody pinned; 0: for ever.
    result_days: int = 90
    #: Where people find the console: links in mails begin so.
    console_url: str = "http://localhost:8000"
    is_url_set: bool = False  #: by SLUICE_URL, not by the port
    #: Seconds an analysis may take.
    analysis_seconds: int = 15 * 60
    #: Seconds without an answer after which the Spark server is restarted; more on a busy machine.
    spark_patience: float = 60
    #: Whether Spark is warmed up when it has started, before anybody asks.
    warms_up: bool = True
    #: Addresses that are not public and that users of the console may have Sluice connect to, see outbound_rules.py.
    outbound: str = ""
    #: Analyses that run at once: in all, and for one person.
    analyses_at_once: int = 2
    analyses_of_one: int = 1
    #: Whether spans of messages are exported to OpenTelemetry, whose own variables say where to.
    exports_spans: bool = False
    #: Whether hourly tables are kept current by Structured Streaming.
    streams_tables: bool = False
    #: Where backups of the console's schedule are written; None: into the data folder.
    backup_folder: Path | None = None

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> Environment:
        """Return the environment that these variables describe. Raises ConfigurationRefused."""
        variables = with_secrets(variables)
        data = Path(variables.get("SLUICE_DATA") or default_data_directory(variables)).resolve()
        return Environment(
            data=data,
            bind=_bind(variables),
            plain_bind=variables.get("SLUICE_PLAIN_BIND") or _bind(variables),
            console_port=_port(variables, "SLUICE_PORT", 8000),
            client_ports=_client_ports(variables),
            replicas=check_replicas(_whole(variables, "SLUICE_REPLICAS", 0), variables.get("REDIS_URL")),
            monitor_port=_port(variables, "SLUICE_MONITOR_PORT", 8161),
            spark_port=_port(variables, "SLUICE_SPARK_PORT", 15002),
            broker_name=variables.get("SLUICE_BROKER", "sluice"),
            redis_url=_store_url(variables) or DataDirectory(data).embedded_url(),
            database_url=variables.get("DATABASE_URL", f"sqlite:///{data}/console.sqlite3"),
            spark_master=variables.get("SPARK_MASTER", "local[2]"),
            tls_certificate=variables.get("SLUICE_TLS_CERTIFICATE"),
            tls_key=variables.get("SLUICE_TLS_KEY"),
            tls_password=variables.get("SLUICE_TLS_PASSWORD"),
            cluster=variables.get("SLUICE_CLUSTER", ""),
            cluster_master=variables.get("SLUICE_CLUSTER_MASTER", ""),
            cluster_user=variables.get("SLUICE_CLUSTER_USER"),
            cluster_password=variables.get("SLUICE_CLUSTER_PASSWORD"),
            indexed=_indexed(variables.get("SLUICE_INDEXED", INDEXED)),
            proxies="".join(variables.get("SLUICE_PROXIES", "").split()),
            audit_days=_whole(variables, "SLUICE_AUDIT_DAYS", 0),
            archive_days=_number(variables, "SLUICE_ARCHIVE_DAYS", ARCHIVE_DAYS),
            archive_bytes=int(_number(variables, "SLUICE_ARCHIVE_GB", ARCHIVE_GIGABYTES) * _GIGABYTE),
            hourly_table_days=_number(variables, "SLUICE_HOURLY_TABLE_DAYS", HOURLY_TABLE_DAYS),
            daily_table_days=_number(variables, "SLUICE_DAILY_TABLE_DAYS", DAILY_TABLE_DAYS),
            console_tls=_console_tls(variables),
            http_port=_port(variables, "SLUICE_HTTP_PORT", 0) if variables.get("SLUICE_HTTP_PORT") else None,
            hsts_seconds=_whole(variables, "SLUICE_HSTS_SECONDS", HSTS_SECONDS),
            console_url=_console_url(variables),
            is_url_set=bool(variables.get("SLUICE_URL")),
            spark_remote=variables.get("SPARK_REMOTE", ""),
            result_days=_whole(variables, "SLUICE_RESULT_DAYS", 90),
            analysis_seconds=_whole(variables, "SLUICE_ANALYSIS_SECONDS", 15 * 60),
            spark_patience=_number(variables, "SLUICE_SPARK_PATIENCE", 60),
            warms_up=variables.get("SLUICE_WARM_UP", "1") != "0",
            outbound=variables.get("SLUICE_OUTBOUND", "private" if _is_for_this_machine(variables) else ""),
            analyses_at_once=_whole(variables, "SLUICE_ANALYSES", 2),
            analyses_of_one=_whole(variables, "SLUICE_ANALYSES_OF_ONE", 1),
            exports_spans=_switch(variables, "SLUICE_EXPORT_SPANS"),
            streams_tables=_switch(variables, "SLUICE_STREAM_TABLES"),
            backup_folder=_folder(variables, "SLUICE_BACKUP_FOLDER"),
        )

    @property
    def listeners(self) -> tuple[ClientPort, ...]:
        """Return the ports on which the broker listens for clients, in the order of CLIENT_PORTS."""
        return tuple(
            ClientPort(scheme, self.bind if setting.tls else self.plain_bind, self.client_ports[scheme], setting)
            for scheme, setting in CLIENT_PORTS.items()
            if scheme in self.client_ports
        )

    @property
    def owns_store(self) -> bool:
        """Whether the embedded Valkey in the data folder is the store."""
        return self.redis_url == DataDirectory(self.data).embedded_url()

    @property
    def sent_hsts_seconds(self) -> int:
        """Return the seconds that the console tells browsers; 0: it does not, as without TLS of its own.

        It would hold for all servers of this machine, whatever their port, where the console is at localhost.
        """
        host = urlsplit(self.console_url).hostname or ""
        return self.hsts_seconds if self.console_tls and host not in _LOCAL else 0

    @property
    def public_port(self) -> int:
        """Return the port at which browsers reach the console."""
        found = urlsplit(self.console_url)
        return found.port or (443 if found.scheme == "https" else 80)

    @property
    def store(self) -> Path:
        """Return the directory of the embedded store."""
        return self.data / "store"

    @property
    def archive(self) -> Path:
        """Recorded traffic, as Parquet."""
        return self.data / "archive"

    @property
    def tables(self) -> Path:
        """Return the directory of the hourly and daily tables of measures."""
        return self.data / "tables"

    @property
    def results(self) -> Path:
        """Results of analyses, a folder each."""
        return self.data / "results"

    @property
    def backups(self) -> Path:
        """Return the directory for backups that the console makes."""
        return self.backup_folder or self.data / "backups"

    @property
    def spark(self) -> Path:
        """Spark's configuration, token and scratch space."""
        return self.data / "spark"


def default_data_directory(variables: Mapping[str, str], is_checkout: bool = IS_CHECKOUT) -> Path:
    """Return where an installation without SLUICE_DATA has its data: `var` in a checkout, else the user's data folder.

    Not the current directory: `sluice up` and `sluice demo`, started in two places, must mean the same installation.
    """
    if is_checkout:
        return PROJECT / "var"
    base = Path(variables.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else Path("~/.local/share").expanduser()) / "sluice"


def _is_for_this_machine(variables: Mapping[str, str]) -> bool:
    """Whether only users of this machine reach the console, who reach its private addresses without Sluice."""
    host = urlsplit(variables.get("SLUICE_URL") or "http://localhost").hostname or ""
    bind = _bind(variables)
    return not variables.get("SLUICE_HOSTS") and all(each in _LOCAL for each in (bind, host))


def _console_tls(variables: Mapping[str, str]) -> bool:
    """Return whether the console serves TLS: as said, or else where there is a certificate and no proxy, which has one.

    Raises ConfigurationRefused.
    """
    has_certificate = bool(variables.get("SLUICE_TLS_CERTIFICATE"))
    if not variables.get("SLUICE_CONSOLE_TLS"):
        return has_certificate and not variables.get("SLUICE_PROXIES", "").strip()
    wanted = _switch(variables, "SLUICE_CONSOLE_TLS")
    if wanted and not has_certificate:
        raise ConfigurationRefused("SLUICE_CONSOLE_TLS=1 needs a certificate: set SLUICE_TLS_CERTIFICATE")
    return wanted


def _console_url(variables: Mapping[str, str]) -> str:
    """Return the address of the console's pages. Raises ConfigurationRefused."""
    url = variables.get("SLUICE_URL")
    if not url:
        return _local_url(variables)
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets without an end
        is_address = False
    if not is_address:
        raise ConfigurationRefused(f"SLUICE_URL={url} must be an address such as https://HOST or http://HOST:PORT")
    return url


def _local_url(variables: Mapping[str, str]) -> str:
    scheme = "https" if _console_tls(variables) else "http"
    return f"{scheme}://localhost:{variables.get('SLUICE_PORT', 8000)}"


def _port(variables: Mapping[str, str], name: str, default: int) -> int:
    """Return a TCP port, 0 for any free one. Raises ConfigurationRefused."""
    found = _whole(variables, name, default)
    if found > 65535:
        raise ConfigurationRefused(f"{name}={variables[name]} must be a port from 0 to 65535")
    return found


def _bind(variables: Mapping[str, str]) -> str:
    return variables.get("SLUICE_BIND", "127.0.0.1")


def _client_ports(variables: Mapping[str, str]) -> dict[str, int]:
    """Return the ports for clients by scheme; an empty variable switches a port off. Raises ConfigurationRefused."""
    found = {}
    for scheme, setting in CLIENT_PORTS.items():
        default = "" if setting.default is None else str(setting.default)
        if not variables.get(setting.variable, default):
            continue
        found[scheme] = _port(variables, setting.variable, setting.default or 0)
        if setting.tls and not variables.get("SLUICE_TLS_CERTIFICATE"):
            raise ConfigurationRefused(f"{setting.variable} needs SLUICE_TLS_CERTIFICATE")
    if not found:
        names = ", ".join(setting.variable for setting in CLIENT_PORTS.values())
        raise ConfigurationRefused(f"no client could connect to the broker: set a port in one of {names}")
    return found


def _folder(variables: Mapping[str, str], name: str) -> Path | None:
    """Return an absolute path; None where none is given. Raises ConfigurationRefused."""
    text = variables.get(name)
    if text and not Path(text).is_absolute():
        raise ConfigurationRefused(f"{name}={text} must be an absolute path")
    return Path(text) if text else None


def _whole(variables: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number of 0 or more. Raises ConfigurationRefused."""
    text = variables.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise ConfigurationRefused(f"{name}={text} must be a whole number of 0 or more")
    return int(text)


def _switch(variables: Mapping[str, str], name: str) -> bool:
    """Return whether something that is off by default is switched on. Raises ConfigurationRefused."""
    text = variables.get(name, "0")
    if text not in ("0", "1"):
        raise ConfigurationRefused(f"{name}={text} must be 0 or 1")
    return text == "1"


def _number(variables: Mapping[str, str], name: str, default: float) -> float:
    """Return a number of 0 or more. Raises ConfigurationRefused."""
    try:
        found = float(variables.get(name, default))
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise ConfigurationRefused(f"{name}={variables[name]} must be a number of 0 or more")
    return found


def _indexed(names: str) -> tuple[str, ...]:
    """The correlation id, and what these names, separated by commas, say."""
    return tuple(dict.fromkeys(("correlation-id", *(name.strip() for name in names.split(",") if name.strip()))))


def _store_url(variables: Mapping[str, str]) -> str:
    """The store's URL where one is named, else ""; raises ConfigurationRefused."""
    url = variables.get("REDIS_URL", "")
    return check_store_url(url) if url else ""
