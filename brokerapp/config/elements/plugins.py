"""Reads and writes `<plugins>`: authentication, authorization and other plugins.

Access rules are never dropped: one that cannot be read denies all access.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from lxml import etree

from brokerapp.config.elements.jaas import read_login_config
from brokerapp.config.elements.message_plugins import (
    DISCARDING,
    read_discarding,
    write_discarding,
)
from brokerapp.config.elements.redelivery import PLUGIN as REDELIVERY
from brokerapp.config.elements.redelivery import read_redelivery, write_redelivery
from brokerapp.config.elements.virtual_destinations import destinations, entry_targets
from brokerapp.config.parsing.attributes import read_fields, write_fields
from brokerapp.config.parsing.broker_config import (
    Authentication,
    BrokerConfig,
    ConfiguredGrant,
    ImportOutcome,
    Plugin,
    User,
)
from brokerapp.config.parsing.document import Element
from brokerapp.config.parsing.unsupported import plugin_remark
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.definitions import RedeliverySettings
from brokerapp.model.destination import NAMED_KINDS
from brokerapp.model.settings import DiscardingSettings, SelectorCacheSettings, TimestampSettings

_RIGHTS = ("read", "write", "admin")

#: ActiveMQ's plugins that guard nothing, kept with their attributes.
_KNOWN = frozenset((
    "connectionDLQPlugin", "destinationDotFilePlugin", "loggingBrokerPlugin", "multicastTraceBrokerPlugin",
    "runtimeConfigurationPlugin", "statisticsBrokerPlugin", "traceBrokerPathPlugin",
    "udpTraceBrokerPlugin",
))  # fmt: skip
#: What tells that a plugin guards the broker, in its name or that of its class.
_GUARDS = re.compile(r"auth|jaas|ldap|shiro|login|secur|certificate", re.IGNORECASE)


@dataclass(slots=True)
class PluginSettings:
    """Settings that `<plugins>` declares."""

    authentication: Authentication | None = None
    authorization: tuple[ConfiguredGrant, ...] | None = None
    redelivery: RedeliverySettings = field(default_factory=RedeliverySettings)
    discarding: DiscardingSettings | None = None
    others: list[Plugin] = field(default_factory=list)
    selector_cache: SelectorCacheSettings | None = None
    time_stamping: TimestampSettings | None = None
    force_persistency: bool | None = None
    path_separator: str = ""


def read_plugins(element: Element) -> PluginSettings:
    """Read all plugins in `<plugins>`."""
    found = PluginSettings()
    element.note_rest(*(child.tag for child in element.children))
    for child in element.children:
        if child.tag in _READERS:
            field_name, read = _READERS[child.tag]
            if child.tag in _EXPORTED:
                found.others.append(Plugin(child.tag, child.untaken))
            setattr(found, field_name, read(child))
        elif child.tag in _KNOWN:
            why = plugin_remark(child.tag)
            child.note(ImportOutcome.IGNORED if why else ImportOutcome.TAKEN, why or "imported with its attributes")
            found.others.append(Plugin(child.tag, child.rest()))
            child.note_rest()
        elif "authorization" in child.tag.lower():
            child.note_locked_out("no user is authorized", "only authorizationPlugin is supported")
            found.authorization = found.authorization or ()
        elif _GUARDS.search(f"{child.tag} {child.get('class')} {child.get('bean')}"):
            child.note_locked_out(
                "no client can connect", "only simpleAuthenticationPlugin and jaasAuthenticationPlugin are supported"
            )
            found.authentication = found.authentication or Authentication()
        else:
            child.note(ImportOutcome.UNKNOWN, "unsupported plugin")
    return found


def _selector_cache(element: Element) -> SelectorCacheSettings:
    element.note(ImportOutcome.TAKEN, "selectors of consumers are remembered")
    values = read_fields(element, SelectorCacheSettings, [each.name for each in fields(SelectorCacheSettings)])
    if (path := element.take("persistFile")) is not None:
        element.note(
            ImportOutcome.ADAPTED,
            f"stored by the broker instead of in {path}; the path is only exported",
            "persistFile",
        )
    element.note_rest()
    return SelectorCacheSettings(**values)


def _time_stamping(element: Element) -> TimestampSettings:
    element.note(ImportOutcome.TAKEN, "timestamps are set by the clock of the broker")
    values = read_fields(element, TimestampSettings, [each.name for each in fields(TimestampSettings)])
    if element.take("processNetworkMessages") is not None:
        element.note(ImportOutcome.IGNORED, "messages from bridges keep their timestamps", "processNetworkMessages")
    element.note_rest()
    return TimestampSettings(**values)


def _force_persistency(element: Element) -> bool:
    forced = element.take_boolean("persistenceFlag") or False
    element.note(ImportOutcome.TAKEN, f"every message is {'' if forced else 'not '}persistent")
    element.note_rest()
    return forced


def _path_separator(element: Element) -> str:
    separator = element.take("pathSeparator") or "/"
    element.note(ImportOutcome.TAKEN, f"clients write {separator!r} for the dot in destination names")
    element.note_rest()
    return separator


def _jaas_authentication(element: Element) -> Authentication:
    entry = element.take("configuration") or "activemq"
    element.take("discoverLoginConfig")
    element.note_rest()
    try:
        authentication, differs = read_login_config(entry, element.load_context)
    except ConfigurationRefused as wrong:
        element.note_locked_out("no client can connect", str(wrong))
        return Authentication()
    element.note(
        ImportOutcome.ADAPTED if differs else ImportOutcome.TAKEN, differs or f"{len(authentication.users)} users"
    )
    for user in authentication.users:
        if user.password is None:
            element.note_locked_out(f"user {user.name} cannot connect", "its password is encrypted")
    return authentication


def _simple_authentication(element: Element) -> Authentication:
    allowed = element.take_boolean("anonymousAccessAllowed") or False
    anonymous = Authentication()
    user = element.take("anonymousUser") or anonymous.anonymous_user
    group = element.take("anonymousGroup") or anonymous.anonymous_group
    element.note_rest("users")
    users = tuple(_user(child) for each in element.named("users") for child in each.named("authenticationUser"))
    element.note(ImportOutcome.TAKEN, f"{len(users)} users")
    return Authentication(users, allowed, user, group)


def _user(element: Element) -> User:
    name, password = element.need("username"), element.take("password")
    groups = _groups(element.take("groups"))
    element.note_rest()
    if password is None or "${" in password:
        element.note_locked_out(f"user {name} cannot connect", "its password is missing", "password")
        password = None
    return User(name, password, groups)


def _groups(text: str | None) -> frozenset[str]:
    return frozenset(group.strip() for group in (text or "").split(",") if group.strip())


def _grants(element: Element) -> Iterator[ConfiguredGrant]:
    """Yield the entries of an authorizationMap; of another kind of map none, so that all access is denied."""
    element.note_rest("map")
    maps = [child for group in element.named("map") for child in group.children]
    for each in maps:
        if each.tag != "authorizationMap":
            each.note_locked_out("no user is authorized", "only authorizationMap is supported")
            continue
        each.note_rest("authorizationEntries", "tempDestinationAuthorizationEntry", "defaultEntry")
        for group in each.named("authorizationEntries"):
            for entry in group.children:
                yield from _entry(entry)
        for group in each.named("tempDestinationAuthorizationEntry", "defaultEntry"):
            for entry in group.children:
                yield from _entry(entry, temporary=group.tag != "defaultEntry", default=group.tag == "defaultEntry")
    element.note(ImportOutcome.TAKEN, "authorization of users")


def _entry(element: Element, temporary: bool = False, default: bool = False) -> Iterator[ConfiguredGrant]:
    targets = entry_targets(element)
    if default:
        targets = [each for kind in NAMED_KINDS for each in destinations(element, ">", kind)]
        element.note(
            ImportOutcome.ADAPTED, "the default entry is imported as one for all queues and one for all topics"
        )
    rights = {right: _groups(element.take(right)) for right in _RIGHTS}
    temporary = any([temporary, element.take_boolean("tempQueue"), element.take_boolean("tempTopic")])
    element.note_rest("destination")
    if not targets and not temporary:
        raise element.refused("queue or topic is required")
    for destination in [*targets, *([None] if temporary else [])]:
        yield ConfiguredGrant(destination, **rights)


#: Plugins that are read: the field of PluginSettings, and the function that reads the value.
_READERS: dict[str, tuple[str, Callable[[Element], Any]]] = {
    "simpleAuthenticationPlugin": ("authentication", _simple_authentication),
    "jaasAuthenticationPlugin": ("authentication", _jaas_authentication),
    "authorizationPlugin": ("authorization", lambda element: tuple(_grants(element))),
    REDELIVERY: ("redelivery", read_redelivery),
    DISCARDING: ("discarding", read_discarding),
    "virtualSelectorCacheBrokerPlugin": ("selector_cache", _selector_cache),
    "timeStampingBrokerPlugin": ("time_stamping", _time_stamping),
    "forcePersistencyModeBrokerPlugin": ("force_persistency", _force_persistency),
    "destinationPathSeparatorPlugin": ("path_separator", _path_separator),
}
#: Of these, plugins whose attributes are exported as they were written.
_EXPORTED = frozenset((
    "destinationPathSeparatorPlugin", "forcePersistencyModeBrokerPlugin", "timeStampingBrokerPlugin",
    "virtualSelectorCacheBrokerPlugin",
))  # fmt: skip


# -- writing


def write_plugins(config: BrokerConfig) -> etree._Element:
    """Write `<plugins>`. Users who cannot connect are left out."""
    element = etree.Element("plugins")
    for plugin in config.plugins:
        etree.SubElement(element, plugin.name, dict(plugin.options))
    if config.definitions.redelivery != RedeliverySettings():
        element.append(write_redelivery(config.definitions.redelivery))
    if config.discarding is not None:
        element.append(write_discarding(config.discarding))
    if config.authentication is not None:
        element.append(_written_authentication(config.authentication))
    if config.authorization is not None:
        element.append(_written_authorization(config.authorization))
    return element


def _written_authentication(authentication: Authentication) -> etree._Element:
    names = ("anonymous_access_allowed", "anonymous_user", "anonymous_group")
    plugin = etree.Element("simpleAuthenticationPlugin", write_fields(authentication, names))
    users = etree.SubElement(plugin, "users")
    for user in authentication.users:
        if user.password is not None:
            etree.SubElement(
                users, "authenticationUser",
                username=user.name, password=user.password, groups=_written_groups(user.groups),
            )  # fmt: skip
    return plugin


def _written_authorization(grants: tuple[ConfiguredGrant, ...]) -> etree._Element:
    plugin = etree.Element("authorizationPlugin")
    entries = etree.SubElement(etree.SubElement(plugin, "map"), "authorizationMap")
    named = etree.SubElement(entries, "authorizationEntries")
    for grant in grants:
        rights = {right: _written_groups(getattr(grant, right)) for right in _RIGHTS if getattr(grant, right)}
        if grant.destination is not None:
            etree.SubElement(
                named, "authorizationEntry", {grant.destination.kind.value: grant.destination.name}, **rights
            )
        else:
            temporary = etree.SubElement(entries, "tempDestinationAuthorizationEntry")
            etree.SubElement(temporary, "tempDestinationAuthorizationEntry", rights)
    return plugin


def _written_groups(groups: frozenset[str]) -> str:
    return ",".join(sorted(groups))
