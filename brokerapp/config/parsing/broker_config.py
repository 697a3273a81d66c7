"""Immutable records of a configuration file, in ActiveMQ's terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from brokerapp.cluster.settings import ClusterSettings
from brokerapp.engine.policy.life_cycles import RECONNECT_WINDOW_MS
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.settings import MAX_SCHEDULER_REPEAT, DiscardingSettings, SelectorCacheSettings, TimestampSettings
from brokerapp.model.transport_connector import NO_STORES, TlsStores
from brokerapp.network.options.definition import NetworkConnector


class ImportOutcome(StrEnum):
    """Outcome of the import for a part of the file."""

    TAKEN = "taken"  #: as it is
    ADAPTED = "adapted"  #: in another form, the finding says which
    IGNORED = "ignored"  #: understood, without effect here
    UNKNOWN = "unknown"  #: not understood


def line_label(file: str, line: int) -> str:
    """Return how messages refer to a line of the configuration, or of a file it imports."""
    return f"{file}, line {line}" if file else f"line {line}"


@dataclass(frozen=True, slots=True)
class ImportFinding:
    """Outcome of the import for `element` (a tag, or `tag@attribute`) in `line`, with the reason.

    `file` is the imported file it stands in, "" the configuration itself. `defines`: it is about definitions, which an
    import takes, and not about what a broker starts with. `locks_out`: it tells of somebody who cannot use a broker
    that starts from the file.
    """

    line: int
    element: str
    what: ImportOutcome
    why: str
    file: str = ""
    defines: bool = False
    locks_out: bool = False

    def __str__(self) -> str:
        return f"{line_label(self.file, self.line)}: {self.element} {self.what}: {self.why}"


#: Beside letters and digits, what the value of a uri's option may hold as it is.
_PLAIN_IN_A_URI = "*.,:/=@~!$'()"


@dataclass(frozen=True, slots=True)
class TransportConnector:
    """Listener of the broker. `port` 0: any free one. `options` are those of the uri, `attributes` the element's."""

    name: str
    scheme: str
    host: str
    port: int
    options: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def uri(self) -> str:
        """Return the uri, put together from its parts."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "&".join(f"{name}={quote(value, _PLAIN_IN_A_URI)}" for name, value in self.options)
        return f"{self.scheme}://{host}:{self.port}" + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may connect; without a password (it could not be read) nobody can as this user."""

    name: str
    password: str | None = field(repr=False)
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Authentication:
    """Users who may connect. Without any users and anonymous access nobody can."""

    users: tuple[User, ...] = ()
    anonymous_access_allowed: bool = False
    anonymous_user: str = "anonymous"
    anonymous_group: str = "anonymous"


@dataclass(frozen=True, slots=True)
class ConfiguredGrant:
    """Which groups may do what with the destinations matching `destination` (None: temporary ones)."""

    destination: Destination | None
    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    admin: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin this version knows the name of: its attributes as written."""

    name: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SystemUsage:
    """Limits of the whole broker, in bytes; None: not set."""

    memory: int | None = None
    store: int | None = None
    temp: int | None = None
    send_fail_if_no_space: bool = False
    send_fail_if_no_space_after_timeout: int = 0  #: milliseconds


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A broker as one file describes it, and the report on what in the file it does not say."""

    name: str = "localhost"
    connectors: tuple[TransportConnector, ...] = ()
    definitions: Definitions = field(default_factory=Definitions)
    destinations: tuple[Destination, ...] = ()  #: that exist from the start
    network_connectors: tuple[NetworkConnector, ...] = ()
    authentication: Authentication | None = None  #: None: everybody may connect
    authorization: tuple[ConfiguredGrant, ...] | None = None  #: None: everybody may do everything
    plugins: tuple[Plugin, ...] = ()  #: those without effect
    discarding: DiscardingSettings | None = None
    tls: TlsStores = NO_STORES
    force_persistency: bool | None = None  #: as its plugin says, which is among `plugins` too
    path_separator: str = ""  #: of names as clients write them, as its plugin says, which is among `plugins` too
    time_stamping: TimestampSettings | None = None  #: as its plugin says, which is among `plugins` too
    selector_cache: SelectorCacheSettings | None = None  #: as its plugin says, which is among `plugins` too
    system_usage: SystemUsage = SystemUsage()
    persistent: bool = True  #: else each start begins with an empty store
    scheduler_support: bool = False
    max_scheduler_repeat_allowed: int = MAX_SCHEDULER_REPEAT
    max_uncommitted_count: int = 0  #: in one transaction; 0: no limit
    advisory_support: bool = True
    use_virtual_topics: bool = True
    use_mirrored_queues: bool = False
    use_temp_mirrored_queues: bool = True
    use_virtual_dest_subs: bool = False
    use_virtual_dest_subs_on_creation: bool = False
    network_connector_start_async: bool = False
    populate_jmsx_user_id: bool = False  #: stamp each message with who sent it (XML: populateJMSXUserID)
    use_authenticated_principal: bool = (
        False  #: ... by whom the login made them (useAuthenticatedPrincipalForJMSXUserID)
    )
    reject_durable_consumers: bool = False
    keep_durable_subs_active: bool = True
    offline_durable_subscriber_timeout: int = -1  #: milliseconds; not above 0: never
    offline_durable_subscriber_task_schedule: int = 300_000  #: milliseconds
    schedule_period_for_destination_purge: int = 0  #: milliseconds; 0: never
    max_purged_destinations_per_sweep: int = 0  #: 0: any number
    delete_all_messages_on_startup: bool = False
    cluster: ClusterSettings | None = None  #: None: it serves alone
    auto_destroy_after: int | None = None  #: milliseconds; 0: never; None: as clusters have it, and never without one
    reconnect_window: int = RECONNECT_WINDOW_MS  #: milliseconds
    report: tuple[ImportFinding, ...] = ()

    @property
    def users(self) -> tuple[User, ...]:
        """Return the users who may connect by name."""
        return self.authentication.users if self.authentication else ()


def default_config(name: str, stomp_port: int | None = None, bind: str = "127.0.0.1") -> BrokerConfig:
    """Return the configuration without a file: a STOMP connector where a port is given, ActiveMQ's defaults else."""
    connectors = () if stomp_port is None else (TransportConnector("stomp", "stomp", bind, stomp_port),)
    return BrokerConfig(name=name, connectors=connectors, scheduler_support=True)
