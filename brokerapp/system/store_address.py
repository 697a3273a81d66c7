"""Parse the store's URL: one server, several of which one is the primary, Sentinels that know the primary, or servers
of a Valkey Cluster that know who has which keys. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from brokerapp.errors import ConfigurationRefused

#: What a URL of a server may begin with.
SCHEMES = ("redis", "rediss", "unix")
#: The same of Sentinels, with the scheme of the servers that they watch; the second speaks TLS to both.
SENTINEL_SCHEMES = {"sentinel": "redis", "sentinels": "rediss"}
#: The same of servers of a Valkey or Redis Cluster.
CLUSTER_SCHEMES = {"cluster": "redis", "clusters": "rediss"}
SERVER_PORT, SENTINEL_PORT = 6379, 26379
#: Options of a URL by which Sluice logs in to Sentinels; all others are for the server.
SENTINEL_LOGIN = ("sentinel_username", "sentinel_password")

_EXPECTED = (
    "expected redis://HOST:PORT/DATABASE, rediss://HOST:PORT/DATABASE, unix://PATH, "
    "or for a store with replicas redis://HOST:PORT,HOST:PORT/DATABASE, sentinel://HOST:PORT,HOST:PORT/NAME/DATABASE "
    "or cluster://HOST:PORT,HOST:PORT"
)
_AS_CLUSTER = "name its servers with cluster://HOST:PORT,HOST:PORT"

HostPort: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Describes where the store is.

    `server_url` is the URL of one server, which has the credentials, the database and the options for each. Where
    `servers`, `sentinels` or `cluster` are named, the host and port in it are those of the first, and the primary is to
    be found.
    """

    server_url: str
    servers: tuple[HostPort, ...] = ()
    sentinels: tuple[HostPort, ...] = ()
    cluster: tuple[HostPort, ...] = ()
    service: str = ""  #: by which name Sentinels know the primary
    sentinel_username: str | None = None
    sentinel_password: str | None = None

    @property
    def has_one_server(self) -> bool:
        """Return whether it names the one server to use."""
        return not (self.servers or self.sentinels or self.cluster)

    @property
    def is_encrypted(self) -> bool:
        """Return whether connections use TLS."""
        return self.server_url.startswith("rediss:")

    @property
    def hosts(self) -> tuple[HostPort, ...]:
        """Return the hosts and ports in the URL: of servers, or of Sentinels; none for a Unix socket."""
        if several := self.servers or self.sentinels or self.cluster:
            return several
        parts = urlsplit(self.server_url)
        return ((parts.hostname, parts.port or SERVER_PORT),) if parts.scheme != "unix" and parts.hostname else ()

    def url_of(self, server: HostPort) -> str:
        """Return the URL of another server of the store."""
        parts = urlsplit(self.server_url)
        login, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{login}{at}{_host_and_port(server)}"))

    def sentinel_url(self, sentinel: HostPort) -> str:
        """Return the URL of a Sentinel, with its own credentials and the options for TLS."""
        parts = urlsplit(self.url_of(sentinel))
        username, password = (quote(each or "", safe="") for each in (self.sentinel_username, self.sentinel_password))
        login = f"{username}:{password}@" if username or password else ""
        tls = [(name, value) for name, value in parse_qsl(parts.query) if name.startswith("ssl_")]
        return urlunsplit((parts.scheme, f"{login}{_host_and_port(sentinel)}", "", urlencode(tls), ""))

    @staticmethod
    def parse(url: str) -> StoreAddress:
        """Return the address in a URL. Raises ConfigurationRefused, without the passwords in it."""
        try:
            return _parse(url)
        except ValueError as problem:
            raise ConfigurationRefused(f"store URL {without_password(url)}: {problem}") from None


def check_store_url(url: str) -> str:
    """Return the URL. Raises ConfigurationRefused for one that names no store."""
    StoreAddress.parse(url)
    return url


def check_replicas(replicas: int, url: str | None) -> int:
    """Return how many replicas are to confirm a change. Raises ConfigurationRefused for a number that none can be."""
    if replicas < 0:
        raise ConfigurationRefused(f"{replicas} replicas: the number must be 0 or more")
    if replicas and not url:
        raise ConfigurationRefused(
            f"{replicas} replicas: the store in the data folder has none; name one with --redis or REDIS_URL"
        )
    return replicas


def cluster_mode_error(url: str) -> ConfigurationRefused:
    """Refuse a server that says it is part of a cluster."""
    return ConfigurationRefused(f"store URL {without_password(url)}: the server runs in cluster mode; {_AS_CLUSTER}")


def _parse(url: str) -> StoreAddress:
    scheme, found, rest = url.partition("://")
    if not found or scheme not in (*SCHEMES, *SENTINEL_SCHEMES, *CLUSTER_SCHEMES):
        raise ValueError(_EXPECTED)
    if scheme == "unix":
        if not rest.partition("?")[0].rpartition("@")[2]:
            raise ValueError(_EXPECTED)
        return StoreAddress(url)
    try:
        parts = urlsplit(url)
    except ValueError:  # an address in brackets that has no end
        raise ValueError(_EXPECTED) from None
    if scheme in SENTINEL_SCHEMES:
        return _parse_sentinels(parts)
    return _parse_cluster(parts) if scheme in CLUSTER_SCHEMES else _parse_servers(url, parts)


def _parse_servers(url: str, parts: SplitResult) -> StoreAddress:
    _check_database(parts.path.strip("/"))
    several = "," in parts.netloc.rpartition("@")[2]
    servers = _hosts(parts, SERVER_PORT)
    if not several:
        return StoreAddress(url)
    address = StoreAddress(url)
    return StoreAddress(address.url_of(servers[0]), servers=servers)


def _parse_sentinels(parts: SplitResult) -> StoreAddress:
    sentinels = _hosts(parts, SENTINEL_PORT)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("the name by which Sentinel knows the primary is missing: sentinel://HOST:PORT,HOST:PORT/NAME")
    _check_database(database)
    options = dict(parse_qsl(parts.query))
    username, password = (options.pop(name, None) for name in SENTINEL_LOGIN)
    server = parts._replace(
        scheme=SENTINEL_SCHEMES[parts.scheme], path=f"/{database}" if database else "", query=urlencode(options)
    )
    address = StoreAddress(urlunsplit(server))
    first = address.url_of(sentinels[0])
    return StoreAddress(
        first, sentinels=sentinels, service=service, sentinel_username=username, sentinel_password=password
    )


def _parse_cluster(parts: SplitResult) -> StoreAddress:
    members = _hosts(parts, SERVER_PORT)
    if parts.path.strip("/") not in ("", "0"):
        raise ValueError("a cluster has one database, 0")
    address = StoreAddress(urlunsplit(parts._replace(scheme=CLUSTER_SCHEMES[parts.scheme], path="")))
    return StoreAddress(address.url_of(members[0]), cluster=members)


def _hosts(parts: SplitResult, default_port: int) -> tuple[HostPort, ...]:
    """Return the hosts and ports of a URL. Raises ValueError."""
    return tuple(_host(each, default_port) for each in parts.netloc.rpartition("@")[2].split(","))


def _host(text: str, default_port: int) -> HostPort:
    one = urlsplit(f"//{text}")
    try:
        port = one.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("the port must be a number from 1 to 65535")
    if not one.hostname:
        raise ValueError(_EXPECTED)
    return one.hostname, port or default_port


def _host_and_port(server: HostPort) -> str:
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_database(database: str) -> None:
    if database and not database.isdecimal():
        raise ValueError("the database must be a whole number, as in /0")


def without_password(url: str) -> str:
    """The URL as logs may show it."""
    scheme, found, rest = url.partition("://")
    before, _, after = rest.rpartition("@")
    place, options, _ = after.partition("?")  # an option may be the password
    return f"{scheme}{found}{'***@' if before else ''}{place}{'?***' if options else ''}"
