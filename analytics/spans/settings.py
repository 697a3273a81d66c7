"""Read the settings of the export of spans from OpenTelemetry's environment variables, and check them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.util.re import parse_env_headers

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.secret_variables import with_secrets

#: The name of the service unless OTEL_SERVICE_NAME has another.
DEFAULT_SERVICE = "sluice"
#: The sampler that the specification has as its default.
DEFAULT_SAMPLER = "parentbased_always_on"
#: The protocol of the exporter that is installed.
PROTOCOL = "http/protobuf"
_SAMPLERS: dict[str, Callable[[float], Sampler]] = {
    "always_on": lambda _: ALWAYS_ON,
    "always_off": lambda _: ALWAYS_OFF,
    "traceidratio": TraceIdRatioBased,
    "parentbased_always_on": lambda _: ParentBased(ALWAYS_ON),
    "parentbased_always_off": lambda _: ParentBased(ALWAYS_OFF),
    "parentbased_traceidratio": lambda ratio: ParentBased(TraceIdRatioBased(ratio)),
}
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")


@dataclass(frozen=True, slots=True)
class SpanSettings:
    """Which spans are exported, by which service and with which headers; the OTLP exporter reads endpoint and TLS."""

    sampler: Sampler
    resource: Resource
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def read(variables: Mapping[str, str], broker: str) -> SpanSettings:
        """Return the settings that these variables describe. Raises ConfigurationRefused."""
        variables = with_secrets(variables)
        for name in _PROTOCOLS:
            if variables.get(name, PROTOCOL) != PROTOCOL:
                raise ConfigurationRefused(f"{name}={variables[name]} is not supported: it must be {PROTOCOL}")
        for name in _ENDPOINTS:
            _check_endpoint(name, variables.get(name, ""))
        service = variables.get("OTEL_SERVICE_NAME") or DEFAULT_SERVICE
        resource = Resource.create({SERVICE_NAME: service, SERVICE_INSTANCE_ID: broker})
        headers = next((variables[name] for name in _HEADERS if variables.get(name)), "")
        return SpanSettings(_sampler(variables), resource, parse_env_headers(headers, liberal=True))


def _check_endpoint(name: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if address and not is_valid:  # not shown: it may contain a password
        raise ConfigurationRefused(f"{name} must be a URL that begins with http:// or https:// and names a host")


def _sampler(variables: Mapping[str, str]) -> Sampler:
    name = variables.get("OTEL_TRACES_SAMPLER") or DEFAULT_SAMPLER
    if name not in _SAMPLERS:
        raise ConfigurationRefused(f"OTEL_TRACES_SAMPLER={name} must be one of {', '.join(_SAMPLERS)}")
    text = variables.get("OTEL_TRACES_SAMPLER_ARG") or "1"
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not 0 <= ratio <= 1:
        raise ConfigurationRefused(f"OTEL_TRACES_SAMPLER_ARG={text} must be a number from 0 to 1")
    return _SAMPLERS[name](ratio)
