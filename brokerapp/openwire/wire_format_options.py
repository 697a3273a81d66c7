"""The options that both sides announce in their first command, WireFormatInfo, and what they agree upon."""

from __future__ import annotations

import dataclasses
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import MAGIC, WireFormatInfo
from brokerapp.openwire.commands.data_types import MAX_VERSION, MIN_VERSION
from brokerapp.openwire.marshalled_values import Long, decode_map, encode_map

#: Bytes of the encoded options: more are refused, as ActiveMQ refuses them.
MAX_OPTIONS_BYTES = 4096


def _option(name: str, default: object) -> Any:
    return dataclasses.field(default=default, metadata={"option": name})


@dataclasses.dataclass(frozen=True, slots=True)
class WireFormatOptions:
    """What one side supports or wishes. None and False: it does not say so."""

    version: int = MAX_VERSION
    tight_encoding_enabled: bool = _option("TightEncodingEnabled", False)
    cache_enabled: bool = _option("CacheEnabled", False)
    cache_size: int = _option("CacheSize", 0)
    size_prefix_disabled: bool = _option("SizePrefixDisabled", False)
    stack_trace_enabled: bool = _option("StackTraceEnabled", False)
    tcp_no_delay_enabled: bool = _option("TcpNoDelayEnabled", False)
    #: Milliseconds without a byte after which the connection counts as dead; 0 for no limit.
    max_inactivity_duration: int = _option("MaxInactivityDuration", 0)
    #: Milliseconds before this counts first. The name on the wire is misspelt.
    max_inactivity_duration_initial_delay: int = _option("MaxInactivityDurationInitalDelay", 0)
    #: Bytes; 0 where nothing is said.
    max_frame_size: int = _option("MaxFrameSize", 0)
    host: str | None = _option("Host", None)
    provider_name: str | None = _option("ProviderName", None)
    provider_version: str | None = _option("ProviderVersion", None)
    platform_details: str | None = _option("PlatformDetails", None)

    @classmethod
    def of(cls, info: WireFormatInfo) -> WireFormatOptions:
        """Return the options of a command that was received.

        Unknown ones are passed over. Raises OpenWireError where the peer does not speak OpenWire, or an option is
        not of its type.
        """
        if info.magic != MAGIC:
            raise OpenWireError(f"the magic is {info.magic!r}: expected {MAGIC!r}")
        if info.version < MIN_VERSION:
            raise OpenWireError(f"version {info.version} is not supported: expected {MIN_VERSION} or higher")
        encoded = info.marshalled_properties or b""
        if len(encoded) > MAX_OPTIONS_BYTES:
            raise OpenWireError(f"wire format options of {len(encoded)} bytes exceed {MAX_OPTIONS_BYTES} bytes")
        given = decode_map(encoded) if encoded else {}
        found = {each: given[name] for each, name in _NAMES.items() if given.get(name) is not None}
        for each, value in found.items():
            if not isinstance(value, _TYPES[each]) or (_TYPES[each] is int and isinstance(value, bool)):
                raise OpenWireError(f"wire format option {_NAMES[each]} is {value!r}")
        return cls(info.version, **found)

    def to_info(self) -> WireFormatInfo:
        """Return the command that announces the options."""
        said = {
            name: Long(value) if each in _LONG_OPTIONS else value
            for each, name in _NAMES.items()
            if (value := getattr(self, each)) is not None
        }
        return WireFormatInfo(version=self.version, marshalled_properties=encode_map(said))

    def agreed_with(self, peer: WireFormatOptions) -> WireFormatOptions:
        """Return what holds for the connection, where these are the own options.

        The lower version and limits, and what both sides can. Of durations 0 stands for none: then there is none.
        """
        both = {each: getattr(self, each) and getattr(peer, each) for each in _NAMES if _TYPES[each] is bool}
        lower = {each: min(getattr(self, each), getattr(peer, each)) for each in _LOWER}
        limits = [each for each in (self.max_frame_size, peer.max_frame_size) if each > 0]
        return dataclasses.replace(self, **both, **lower, max_frame_size=min(limits, default=0))


_OPTIONS = [each for each in dataclasses.fields(WireFormatOptions) if each.metadata]
#: Names on the wire, by those of the fields.
_NAMES: dict[str, str] = {each.name: each.metadata["option"] for each in _OPTIONS}
_TYPES: dict[str, type] = {each.name: str if each.default is None else type(each.default) for each in _OPTIONS}
_LONG_OPTIONS = frozenset({"max_inactivity_duration", "max_inactivity_duration_initial_delay", "max_frame_size"})
_LOWER = ("version", "cache_size", "max_inactivity_duration", "max_inactivity_duration_initial_delay")
