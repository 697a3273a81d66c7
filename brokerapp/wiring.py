"""Wiring: the one place where configuration, store and node are put together."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import replace

from brokerapp.config import Authentication, BrokerConfig, Grant, default_config
from brokerapp.destination import ANY_REST, NAMED_KINDS, Destination
from brokerapp.engine.access import Principal
from brokerapp.environment import Environment
from brokerapp.errors import ConfigurationRefused
from brokerapp.node import Listen, Node, NodeConfig
from brokerapp.settings import Settings
from brokerapp.stomp.listener import Authenticate

#: Schemes of transport connectors behind which STOMP over TCP is served.
SERVED_SCHEMES = frozenset({"stomp", "stomp+nio", "tcp", "nio"})

#: Groups of an installation's users whose programs may produce and consume, everywhere: administrators, and programs.
PRODUCING_AND_CONSUMING = frozenset({"admin", "client"})
INSTALLATION_GRANTS = tuple(
    Grant(destination, read=PRODUCING_AND_CONSUMING, write=PRODUCING_AND_CONSUMING, admin=PRODUCING_AND_CONSUMING)
    for destination in (*(Destination(kind, ANY_REST) for kind in NAMED_KINDS), None)
)


async def start_node(environment: Environment, authenticate: Authenticate | None) -> Node:
    """The node of an installation (`make run`): it listens when this returns."""
    config = default_config(environment.broker_name, environment.stomp_port, environment.bind)
    config = replace(config, authorization=INSTALLATION_GRANTS)
    node = Node(node_config(config, environment.redis_url, alone=environment.owns_store), authenticate)
    await node.start()
    return node


def node_config(
    config: BrokerConfig,
    redis_url: str,
    *,
    name: str | None = None,
    alone: bool = False,
    impose: bool = False,
    trace: bool = True,
) -> NodeConfig:
    """What a node needs of a configuration.

    `impose`: its definitions replace those of the store when the file changed.
    """
    return NodeConfig(
        broker=name or config.name,
        redis_url=redis_url,
        listen=tuple(Listen(each.host, each.port, each.name) for each in served(config)),
        definitions=config.definitions,
        destinations=config.destinations,
        grants=config.authorization,
        impose=impose,
        store_limit=config.system_usage.store or 0,
        trace=trace,
        settings=Settings(
            scheduler_support=config.scheduler_support,
            advisory_support=config.advisory_support,
            schedule_period_for_destination_purge=config.schedule_period_for_destination_purge,
            max_purged_destinations_per_sweep=config.max_purged_destinations_per_sweep,
            delete_all_messages_on_startup=config.delete_all_messages_on_startup,
            send_fail_if_no_space=config.system_usage.send_fail_if_no_space,
            send_fail_if_no_space_after_timeout=config.system_usage.send_fail_if_no_space_after_timeout,
        ),
        alone=alone,
    )


def served(config: BrokerConfig):
    """The connectors that are listened on."""
    return [each for each in config.connectors if each.scheme in SERVED_SCHEMES]


def not_served(config: BrokerConfig):
    """The connectors that are not, because of what they speak."""
    return [each for each in config.connectors if each.scheme not in SERVED_SCHEMES]


def authenticator(authentication: Authentication | None) -> Authenticate | None:
    """The users of a configuration file; None when everybody may come in."""
    if authentication is None:
        return None
    users = {user.name: user for user in authentication.users}

    async def authenticate(login: str | None, passcode: str | None) -> Principal | None:
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
    for connector in served(config):
        if not _is_loopback(connector.host):
            raise ConfigurationRefused(
                f"transportConnector {connector.name!r} listens on {connector.host}, beyond this machine, and the file "
                "asks for no login (simpleAuthenticationPlugin): add one, listen on 127.0.0.1, or say --anonymous"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
