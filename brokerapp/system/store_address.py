"""The store's URL: which ones can be served, and one sentence about each other one. Pure."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from brokerapp.errors import ConfigurationRefused

#: What a URL of a store may begin with.
SCHEMES = ("redis", "rediss", "unix")
#: Schemes by which others name servers that Sluice cannot use yet.
_UNSUPPORTED = {"sentinel": "Redis Sentinel", "cluster": "Redis Cluster"}

_EXPECTED = "expected redis://HOST:PORT/DATABASE, rediss://HOST:PORT/DATABASE or unix://PATH"
_ONE_PRIMARY = "use the address of one primary server, redis://HOST:PORT/DATABASE"


def check_store_url(url: str) -> str:
    """Return the URL; raises ConfigurationRefused for one that does not name a single server."""
    if problem := _problem(url):
        raise ConfigurationRefused(f"store URL {_without_password(url)}: {problem}")
    return url


def cluster_mode_error(url: str) -> ConfigurationRefused:
    """Refuse a server that says it is part of a cluster."""
    return ConfigurationRefused(
        f"store URL {_without_password(url)}: the server runs in cluster mode, and Redis Cluster is not supported yet; "
        f"{_ONE_PRIMARY}"
    )


def _problem(url: str) -> str:
    scheme, found, rest = url.partition("://")
    for word, name in _UNSUPPORTED.items():
        if found and word in scheme.lower():
            return f"{name} is not supported yet; {_ONE_PRIMARY}"
    if scheme not in SCHEMES or not found:
        return _EXPECTED
    if scheme == "unix":
        return "" if rest.partition("?")[0].rpartition("@")[2] else _EXPECTED
    try:
        parts = urlsplit(url)
    except ValueError:  # an address in brackets that has no end
        return _EXPECTED
    if "," in parts.netloc.rpartition("@")[2]:
        return f"several addresses are not supported yet; {_ONE_PRIMARY}"
    return _problem_of_server(parts)


def _problem_of_server(parts: SplitResult) -> str:
    try:
        port_is_valid = parts.port != 0
    except ValueError:
        port_is_valid = False
    if not port_is_valid:
        return "the port must be a number from 1 to 65535"
    database = parts.path.strip("/")
    return "" if not database or database.isdecimal() else "the database must be a whole number, as in /0"


def _without_password(url: str) -> str:
    """The URL as logs may show it."""
    scheme, found, rest = url.partition("://")
    before, _, after = rest.rpartition("@")
    place, options, _ = after.partition("?")  # an option may be the password
    return f"{scheme}{found}{'***@' if before else ''}{place}{'?***' if options else ''}"
