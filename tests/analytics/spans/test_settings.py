"""Test which settings of OpenTelemetry are taken, and which are refused with their name."""

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, DEFAULT_ON, TraceIdRatioBased

from analytics.spans.settings import SpanSettings
from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import Environment
from console.ops.processes import process_specs


def test_nothing_set_samples_what_producers_sampled_and_all_else():
    found = SpanSettings.read({}, "north")
    assert found.sampler.get_description() == DEFAULT_ON.get_description()
    attributes = found.resource.attributes
    assert (attributes["service.name"], attributes["service.instance.id"]) == ("sluice", "north")


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("always_off", "", ALWAYS_OFF.get_description()),
        ("traceidratio", "0.25", TraceIdRatioBased(0.25).get_description()),
        ("parentbased_traceidratio", "0.5", "TraceIdRatioBased{0.5}"),
    ],
)
def test_the_sampler_is_the_one_of_the_environment(name, argument, expected):
    found = SpanSettings.read({"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument}, "north")
    assert expected in found.sampler.get_description()


def test_the_service_has_the_name_of_the_environment():
    found = SpanSettings.read({"OTEL_SERVICE_NAME": "orders-broker"}, "north")
    assert found.resource.attributes["service.name"] == "orders-broker"


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc .* must be http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://[x"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL"),
        ({"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER=sometimes must be one of always_on"),
        ({"OTEL_TRACES_SAMPLER_ARG": "2"}, "OTEL_TRACES_SAMPLER_ARG=2 must be a number from 0 to 1"),
        ({"OTEL_TRACES_SAMPLER_ARG": "half"}, "OTEL_TRACES_SAMPLER_ARG=half must be a number from 0 to 1"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(variables, rule):
    with pytest.raises(ConfigurationRefused, match=rule):
        SpanSettings.read(variables, "north")


@pytest.mark.parametrize(("value", "is_on"), [(None, False), ("0", False), ("1", True)])
def test_spans_are_exported_by_a_process_of_its_own_where_it_is_switched_on(value, is_on, tmp_path):
    variables = {"SLUICE_DATA": str(tmp_path)} | ({"SLUICE_EXPORT_SPANS": value} if value else {})
    names = [each.name for each in process_specs(Environment.read(variables))]
    assert ("spans" in names) is is_on


def test_another_value_of_the_switch_is_refused():
    with pytest.raises(ConfigurationRefused, match="SLUICE_EXPORT_SPANS=yes must be 0 or 1"):
        Environment.read({"SLUICE_EXPORT_SPANS": "yes"})
