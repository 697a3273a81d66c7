"""Define network connectors as a file or an operator declares them, and their JSON form. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from brokerapp.errors import DefinitionRefused
from brokerapp.model.destination import Destination

#: Options that nobody is shown: JSON for operators leaves their values out.
SECRETS = frozenset({"password", "remotePassword"})
_LISTS = ("dynamically_included", "statically_included", "excluded", "durable")


@dataclass(frozen=True, slots=True)
class NetworkConnector:
    """A link this broker wants to others. `options` holds the other attributes as written, under their own names."""

    name: str
    uri: str
    dynamically_included: tuple[Destination, ...] = ()
    statically_included: tuple[Destination, ...] = ()
    excluded: tuple[Destination, ...] = ()
    durable: tuple[Destination, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    #: The rule for the addresses that it may connect to, as SLUICE_OUTBOUND states it; None: any, as for connectors of
    #: configuration files.
    outbound: str | None = None

    def to_json(self, *, secrets: bool = False) -> dict[str, Any]:
        """Plain values: `name`, `uri`, lists of destinations in native form, and `options` by name.

        Secrets are None unless they are asked for; with them comes `outbound`, which operators do not edit.
        """
        options = {name: text if secrets or name not in SECRETS else None for name, text in self.options}
        lists = {field: list(map(write_destination, getattr(self, field))) for field in _LISTS if getattr(self, field)}
        rule = {"outbound": self.outbound} if secrets and self.outbound is not None else {}
        return {"name": self.name, "uri": self.uri, **lists, **({"options": options} if options else {}), **rule}

    def without_secrets(self) -> NetworkConnector:
        """Return the connector without its secrets."""
        return replace(self, options=tuple((name, text) for name, text in self.options if name not in SECRETS))

    @staticmethod
    def from_json(data: Mapping[str, Any], former: NetworkConnector | None = None) -> NetworkConnector:
        """The inverse of to_json. Raises DefinitionRefused.

        A secret that is None stays as the `former` one has it, as long as it is told to the same brokers for the same
        user: who may not see it may not send it elsewhere, either. The rule for addresses stays with the uri, too.
        """
        if unknown := sorted(data.keys() - {"name", "uri", "options", "outbound", *_LISTS}):
            raise DefinitionRefused(f"unknown fields of a network connector: {', '.join(unknown)}")
        for field in ("name", "uri"):
            if not isinstance(data.get(field), str) or not data[field].strip():
                raise DefinitionRefused(f"{field} of a network connector is missing")
        lists: dict[str, Any] = {field: tuple(map(Destination.parse, data.get(field, ()))) for field in _LISTS}
        rule = former.outbound if former is not None and former.uri == data["uri"] else None
        made = NetworkConnector(data["name"], data["uri"], **lists, outbound=data.get("outbound", rule))
        options = data.get("options", {})
        same = (
            former is not None
            and former.uri == made.uri
            and all(former.option(user) == options.get(user) for user in ("userName", "remoteUserName"))
        )
        return replace(made, options=tuple(_options(options, former, same=same)))

    def option(self, name: str) -> str | None:
        """Return the text of an option, or None."""
        return dict(self.options).get(name)


def write_destination(destination: Destination) -> str:
    """In native form, with the options behind it."""
    options = "&".join(f"{name}={value}" for name, value in destination.options.items())
    return f"{destination}?{options}" if options else str(destination)


def _options(given: Mapping[str, Any], former: NetworkConnector | None, *, same: bool) -> list[tuple[str, str]]:
    found = []
    for name, value in given.items():
        if value is None and name in SECRETS and former is not None:
            value = former.option(name)
            if value is not None and not same:
                raise DefinitionRefused(
                    f"{name}: the stored password belongs to another uri or userName: enter it again"
                )
        if value is None:
            continue
        found.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return found
