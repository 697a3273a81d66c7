"""Reads users from a JAAS login configuration with ActiveMQ's property files and guests.

`PropertiesLoginModule` reads users and groups from two files next to the login configuration, `GuestLoginModule`
accepts clients without a password. Any other module or combination denies all access.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from brokerapp.config.parsing.broker_config import Authentication, User
from brokerapp.config.parsing.load_context import LoadContext
from brokerapp.errors import ConfigurationRefused
from brokerapp.openwire.java_properties import parse_properties

#: Name of the file when nothing says another one.
LOGIN_CONFIG = "login.config"
#: Property that names it, as in Java.
LOGIN_CONFIG_PROPERTY = "java.security.auth.login.config"

_PACKAGE = "org.apache.activemq.jaas."
_PROPERTIES, _GUEST = f"{_PACKAGE}PropertiesLoginModule", f"{_PACKAGE}GuestLoginModule"
_USER_FILE, _GROUP_FILE = f"{_PACKAGE}properties.user", f"{_PACKAGE}properties.group"
_GUEST_USER, _GUEST_GROUP = f"{_PACKAGE}guest.user", f"{_PACKAGE}guest.group"

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ENTRY = re.compile(r"([\w.-]+)\s*\{([^{}]*)\}\s*;")
_MODULE = re.compile(r"\s*([\w.$]+)\s+(\w+)\s*((?:[\w.$-]+\s*=\s*(?:\"[^\"]*\"|[^\s;\"]+)\s*)*)\s*")
_OPTION = re.compile(r"([\w.$-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;\"]+))")


@dataclass(frozen=True, slots=True)
class _LoginModule:
    name: str
    flag: str
    options: dict[str, str]


def read_login_config(entry: str, load_context: LoadContext) -> tuple[Authentication, str]:
    """Return the users of this entry of the login configuration, and where it differs from Java's.

    Raises ConfigurationRefused when it cannot be read, or says what cannot be done here.
    """
    location = load_context.properties.get(LOGIN_CONFIG_PROPERTY, LOGIN_CONFIG)
    modules = _modules(load_context.read(location), entry, location)
    match [(each.name, each.flag) for each in modules]:
        case [(name, "required" | "requisite" | "sufficient")] if name == _PROPERTIES:
            return Authentication(_users(modules[0], load_context)), ""
        case [(name, "required" | "requisite" | "sufficient")] if name == _GUEST:
            return _with_guest((), modules[0]), "clients that send a password are rejected"
        case [(first, "sufficient"), (second, _)] if (first, second) == (_PROPERTIES, _GUEST):
            differs = "clients with a wrong password are rejected, not accepted as guests"
            return _with_guest(_users(modules[0], load_context), modules[1]), differs
        case [(first, "sufficient"), (second, "required" | "requisite" | "sufficient")] if (first, second) == (
            _GUEST,
            _PROPERTIES,
        ) and modules[0].options.get("credentialsInvalidate") == "true":
            return _with_guest(_users(modules[1], load_context), modules[0]), ""
    names = ", ".join(f"{each.name} {each.flag}" for each in modules)
    raise ConfigurationRefused(f"{location}: unsupported combination of login modules: {names}")


def _modules(text: str, entry: str, location: str) -> list[_LoginModule]:
    entries = dict(_ENTRY.findall(_COMMENT.sub("", text)))
    if entry not in entries:
        raise ConfigurationRefused(f"{location} has no readable entry {entry!r}")
    modules = []
    for part in entries[entry].split(";"):
        if not part.strip():
            continue
        if (module := _MODULE.fullmatch(part)) is None:
            raise ConfigurationRefused(
                f"{location}: {part.strip()[:80]!r} is not a login module with a flag and options"
            )
        options = {name: quoted or plain for name, quoted, plain in _OPTION.findall(module[3])}
        modules.append(_LoginModule(module[1], module[2].lower(), options))
    return modules


def _users(module: _LoginModule, load_context: LoadContext) -> tuple[User, ...]:
    folder = module.options.get("baseDir", "")

    def pairs(option: str) -> dict[str, str]:
        name = module.options.get(option)
        if name is None:
            raise ConfigurationRefused(f"{module.name} has no option {option}")
        return parse_properties(load_context.read(f"{folder}/{name}" if folder else name))

    members = {group: {each.strip() for each in users.split(",")} for group, users in pairs(_GROUP_FILE).items()}
    return tuple(
        User(
            name, None if password.startswith("ENC(") else password, frozenset(g for g in members if name in members[g])
        )
        for name, password in pairs(_USER_FILE).items()
    )


def _with_guest(users: tuple[User, ...], guest: _LoginModule) -> Authentication:
    """Return users and access for clients without a password."""
    return Authentication(
        users,
        anonymous_access_allowed=True,
        anonymous_user=guest.options.get(_GUEST_USER, "guest"),
        anonymous_group=guest.options.get(_GUEST_GROUP, "guests"),
    )
