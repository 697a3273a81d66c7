"""Build nodes from the environment or a configuration file."""

from __future__ import annotations

import hmac
from dataclasses import replace

from brokerapp.cluster.settings import ClusterSettings, check, read_members
from brokerapp.config import Authentication, BrokerConfig, ConfiguredGrant, TransportConnector, default_config
from brokerapp.config.elements.connector_options import DISCOVERY_URI, conventions_of, limits_of, tls_options_of
from brokerapp.connections.installation_tls import tls_stores
from brokerapp.connections.login import Authenticate
from brokerapp.connections.tls import mutual_contexts
from brokerapp.connections.tls_renewal import RenewedFromFiles, ServerContext
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.policy.life_cycles import AUTO_DESTROY_AFTER_MS
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.destination import ANY_REST, NAMED_KINDS, Destination
from brokerapp.model.settings import Settings
from brokerapp.model.transport_connector import TRANSPORTS, TlsOptions, is_loopback
from brokerapp.nodes.links.peer_links import LinkTls
from brokerapp.runtime.hosted_node import HostedNode
from brokerapp.runtime.listeners import ListenAddress
from brokerapp.runtime.node import Node
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.system.environment import Environment

#: Groups of an installation's users whose programs may produce and consume, everywhere: administrators, and programs.
PRODUCING_AND_CONSUMING = frozenset({"admin", "client"})
#: Those that may join a broker to this one.
BRIDGING = frozenset({"admin"})
INSTALLATION_GRANTS = tuple(
    ConfiguredGrant(
        destination, read=PRODUCING_AND_CONSUMING, write=PRODUCING_AND_CONSUMING, admin=PRODUCING_AND_CONSUMING
    )
    for destination in (*(Destination(kind, ANY_REST) for kind in NAMED_KINDS), None)
)


async def start_node(environment: Environment, authenticate: Authenticate | None) -> HostedNode:
    """Start the node of an installation (`make run`): it listens when this returns, and restarts after failures."""
    config = _installed(environment)
    if problems := listen_addresses(config)[1]:
        raise ConfigurationRefused("; ".join(problems))
    wanted = node_config(config, environment.redis_url, alone=environment.owns_store, replicas=environment.replicas)
    wanted = replace(
        wanted,
        settings=replace(wanted.settings, bridge_groups=BRIDGING),
        store_folder=environment.store if environment.owns_store else None,
    )
    hosted = HostedNode(lambda: Node(wanted, authenticate))
    await hosted.start()
    return hosted


def _installed(environment: Environment) -> BrokerConfig:
    """Return the configuration of an installation: the environment's ports, the users' permissions, defaults else."""
    connectors = tuple(
        TransportConnector("openwire" if each.scheme == "tcp" else each.scheme, each.scheme, each.host, each.number)
        for each in environment.listeners
    )
    cluster = None
    if environment.cluster:
        cluster = ClusterSettings(
            read_members(environment.cluster), environment.cluster_master, environment.cluster_user,
            environment.cluster_password,
        )  # fmt: skip
    config = default_config(environment.broker_name)
    return replace(
        config, connectors=connectors, tls=tls_stores(environment), authorization=INSTALLATION_GRANTS, cluster=cluster
    )


def node_config(
    config: BrokerConfig,
    redis_url: str,
    *,
    name: str | None = None,
    alone: bool = False,
    impose: bool = False,
    trace: bool = True,
    replicas: int = 0,
) -> NodeConfig:
    """Return the settings of a node for this broker configuration.

    `impose`: its definitions replace those of the store when the file changed.
    """
    broker, cluster = name or config.name, config.cluster
    if cluster is not None:
        check(cluster, broker)
    return NodeConfig(
        broker=broker,
        redis_url=redis_url,
        replicas=replicas,
        listen=listen_addresses(config)[0],
        definitions=config.definitions,
        destinations=config.destinations,
        grants=config.authorization,
        replaces_definitions=impose,
        store_limit=config.system_usage.store or 0,
        temp_limit=config.system_usage.temp or 0,
        trace=trace,
        settings=Settings(
            scheduler_support=config.scheduler_support,
            max_scheduler_repeat_allowed=config.max_scheduler_repeat_allowed,
            advisory_support=config.advisory_support,
            use_virtual_dest_subs=config.use_virtual_dest_subs,
            use_virtual_dest_subs_on_creation=config.use_virtual_dest_subs_on_creation,
            statistics=any(plugin.name == "statisticsBrokerPlugin" for plugin in config.plugins),
            max_uncommitted_count=max(0, config.max_uncommitted_count),
            discarding=config.discarding,
            schedule_period_for_destination_purge=config.schedule_period_for_destination_purge,
            max_purged_destinations_per_sweep=config.max_purged_destinations_per_sweep,
            delete_all_messages_on_startup=config.delete_all_messages_on_startup or not config.persistent,
            populate_jmsx_user_id=config.populate_jmsx_user_id,
            use_authenticated_principal=config.use_authenticated_principal,
            memory_limit=config.system_usage.memory or 0,
            reject_durable_consumers=config.reject_durable_consumers,
            keep_durable_subs_active=config.keep_durable_subs_active,
            offline_durable_subscriber_timeout=config.offline_durable_subscriber_timeout,
            offline_durable_subscriber_task_schedule=config.offline_durable_subscriber_task_schedule,
            send_fail_if_no_space=config.system_usage.send_fail_if_no_space,
            send_fail_if_no_space_after_timeout=config.system_usage.send_fail_if_no_space_after_timeout,
            selector_cache=config.selector_cache,
            time_stamping=config.time_stamping,
            force_persistency=config.force_persistency,
            auto_destroy_after=auto_destroy_after(config),
            reconnect_window=config.reconnect_window,
        ),
        owns_store=alone,
        cluster=cluster,
        network=config.network_connectors,
        network_at_once=config.network_connector_start_async,
        tls=config.tls,
    )


def link_tls(config: BrokerConfig) -> RenewedFromFiles[LinkTls]:
    """Return the TLS contexts for links between nodes of a broker. Raises ConfigurationRefused."""
    return RenewedFromFiles(config.tls, lambda stores: LinkTls(*mutual_contexts(stores)), "links between nodes")


def auto_destroy_after(config: BrokerConfig) -> int:
    """Return the milliseconds without use after which auto-created destinations are deleted; 0: never."""
    if config.auto_destroy_after is None:
        return AUTO_DESTROY_AFTER_MS if config.cluster is not None else 0
    return max(0, config.auto_destroy_after)


def listen_addresses(config: BrokerConfig) -> tuple[tuple[ListenAddress, ...], tuple[str, ...]]:
    """Return where to listen, and a sentence for each connector that cannot be served.

    The report on the file names connectors that speak another protocol.
    """
    found, refused = [], []
    contexts: dict[TlsOptions, ServerContext] = {}  # connectors with the same options share one: files are slow to read
    for connector in config.connectors:
        if connector.scheme not in TRANSPORTS:
            continue
        try:
            found.append(_listen(connector, config, contexts))
        except ConfigurationRefused as why:
            refused.append(f"transportConnector {connector.name!r} at {connector.uri} is not served: {why}")
    return tuple(found), tuple(refused)


def check_served(config: BrokerConfig) -> None:
    """Raise ConfigurationRefused when no client could connect, as no connector is served."""
    served, refused = listen_addresses(config)
    if not served and refused:
        raise ConfigurationRefused(
            f"no transportConnector of {config.name} is served, so no client could connect: "
            "correct what is reported above"
        )
    if not served:
        raise ConfigurationRefused(
            f"no transportConnector of {config.name} is served, so no client could connect: add one, "
            'such as <transportConnector name="stomp" uri="stomp://127.0.0.1:61613"/>'
        )


def _listen(
    connector: TransportConnector, config: BrokerConfig, contexts: dict[TlsOptions, ServerContext]
) -> ListenAddress:
    carrier = TRANSPORTS[connector.scheme]
    tls = None
    if carrier.tls:
        options = tls_options_of(connector)
        tls = contexts.get(options) or contexts.setdefault(options, ServerContext(config.tls, options, "connectors"))
    return ListenAddress(
        connector.host,
        connector.port,
        connector.name,
        transport=carrier,
        tls=tls,
        limits=limits_of(connector),
        conventions=replace(conventions_of(connector)[0], path_separator=config.path_separator),
        discovery=dict(connector.attributes).get(DISCOVERY_URI, ""),
    )


def authenticator(authentication: Authentication | None) -> Authenticate | None:
    """Return a function that checks the users of a configuration file; None when everybody may connect."""
    if authentication is None:
        return None
    users = {user.name: user for user in authentication.users}

    async def authenticate(login: str | None, passcode: str | None, address: str) -> Principal | None:
        if login is None and passcode is None and authentication.anonymous_access_allowed:
            return Principal(authentication.anonymous_user, frozenset({authentication.anonymous_group}))
        user = users.get(login or "")
        if user is None or user.password is None or passcode is None:
            return None
        if not hmac.compare_digest(user.password.encode(), passcode.encode()):
            return None
        return Principal(user.name, user.groups)

    return authenticate


def check_exposure(config: BrokerConfig, anonymous: bool) -> None:
    """Raise ConfigurationRefused when everybody could come in from other machines and nobody said that is meant."""
    if config.authentication is not None or anonymous:
        return
    for connector in config.connectors:
        if connector.scheme in TRANSPORTS and not is_loopback(connector.host):
            raise ConfigurationRefused(
                f"transportConnector {connector.name!r} listens on {connector.host}, which other machines can reach, "
                "without authentication (simpleAuthenticationPlugin): add it, listen on 127.0.0.1, or use --anonymous"
            )
