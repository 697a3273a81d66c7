"""Test the options of the first command, and what two sides agree upon."""

import pytest

from brokerapp.errors import OpenWireError
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import WireFormatInfo
from brokerapp.openwire.marshalled_values import Long, decode_map, encode_map
from brokerapp.openwire.wire_format_options import WireFormatOptions

OURS = WireFormatOptions(
    version=12, tight_encoding_enabled=True, cache_enabled=True, cache_size=1024, stack_trace_enabled=True,
    tcp_no_delay_enabled=True, max_inactivity_duration=30_000, max_inactivity_duration_initial_delay=10_000,
    max_frame_size=2**40, host="localhost", provider_name="Sluice", provider_version="1", platform_details="Python",
)  # fmt: skip


@pytest.mark.parametrize("options", [OURS, WireFormatOptions(), WireFormatOptions(version=1, host="é")])
def test_options_are_the_same_after_sending_them_in_any_version(options):
    for version in (1, 12):
        sent = Codec(version).encode(options.to_info())
        assert WireFormatOptions.of(Codec(13 - version).decode(sent[4:])) == options


def test_the_names_and_types_on_the_wire_are_those_of_java():
    sent = decode_map(OURS.to_info().marshalled_properties)
    assert sent["MaxInactivityDurationInitalDelay"] == 10_000
    long = {name for name, value in sent.items() if type(value) is Long}
    assert long == {"MaxInactivityDuration", "MaxInactivityDurationInitalDelay", "MaxFrameSize"}
    assert type(sent["CacheSize"]) is int
    assert sorted(sent) == [
        "CacheEnabled", "CacheSize", "Host", "MaxFrameSize", "MaxInactivityDuration",
        "MaxInactivityDurationInitalDelay", "PlatformDetails", "ProviderName", "ProviderVersion",
        "SizePrefixDisabled", "StackTraceEnabled", "TcpNoDelayEnabled", "TightEncodingEnabled",
    ]  # fmt: skip


def test_unknown_options_are_passed_over_and_missing_ones_have_their_defaults():
    info = WireFormatInfo(version=9, marshalled_properties=encode_map({"Colour": "red", "Host": None}))
    assert WireFormatOptions.of(info) == WireFormatOptions(version=9)
    assert WireFormatOptions.of(WireFormatInfo(version=9)) == WireFormatOptions(version=9)


def test_both_sides_agree_upon_the_lower_version_and_limits_and_on_what_both_can():
    peer = WireFormatOptions(
        version=13, tight_encoding_enabled=True, cache_enabled=False, cache_size=100, max_inactivity_duration=0,
        max_inactivity_duration_initial_delay=20_000, max_frame_size=0,
    )  # fmt: skip
    agreed = OURS.agreed_with(peer)
    assert (agreed.version, agreed.tight_encoding_enabled, agreed.cache_enabled) == (12, True, False)
    assert (agreed.cache_size, agreed.max_inactivity_duration) == (100, 0)
    assert (agreed.max_inactivity_duration_initial_delay, agreed.max_frame_size) == (10_000, 2**40)
    assert OURS.agreed_with(WireFormatOptions(max_frame_size=5)).max_frame_size == 5


@pytest.mark.parametrize(
    ("info", "sentence"),
    [
        (WireFormatInfo(b"NotAMagi", 12), "the magic is b'NotAMagi': expected b'ActiveMQ'"),
        (WireFormatInfo(version=0), "version 0 is not supported: expected 1 or higher"),
        (WireFormatInfo(version=12, marshalled_properties=bytes(4097)), "options of 4097 bytes exceed 4096 bytes"),
        (WireFormatInfo(version=12, marshalled_properties=b"\0"), "values end too early"),
        (WireFormatInfo(version=12, marshalled_properties=encode_map({"CacheSize": True})), "CacheSize is True"),
        (WireFormatInfo(version=12, marshalled_properties=encode_map({"Host": 1})), "wire format option Host is 1"),
    ],
)
def test_what_is_wrong_with_the_first_command_is_said(info, sentence):
    with pytest.raises(OpenWireError, match=sentence):
        WireFormatOptions.of(info)
