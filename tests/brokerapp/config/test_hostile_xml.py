"""Test that malicious XML is refused quickly, with a sentence that says why."""

import pytest

from brokerapp.config import import_definitions, read_config
from brokerapp.config.reader import parse_config
from brokerapp.errors import ConfigurationRefused

LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12))
SECRET = "file:///etc/hostname"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f'<!DOCTYPE broker [<!ENTITY a "ha">{LAUGHS}]><broker brokerName="x"/>', "XML entities are not supported"),
        (f'<!DOCTYPE broker [<!ENTITY a "ha">{LAUGHS}]><broker>&m;</broker>', "amplification"),
        (f'<!DOCTYPE broker [<!ENTITY a "ha">{LAUGHS}]><broker brokerName="&m;"/>', "amplification"),
        (f'<!DOCTYPE broker [<!ENTITY x SYSTEM "{SECRET}">]><broker>&x;</broker>', "XML entities are not supported"),
        (f'<!DOCTYPE broker [<!ENTITY x SYSTEM "{SECRET}">]><broker brokerName="&x;"/>', "external entity"),
        (f'<!DOCTYPE broker [<!ENTITY % x SYSTEM "{SECRET}"> %x;]><broker/>', "XML entities are not supported"),
        ('<!DOCTYPE broker SYSTEM "http://127.0.0.1:9/x.dtd"><broker brokerName="&x;"/>', "'x' not defined"),
        ('<broker brokerName="&x;"/>', "'x' not defined"),
        (
            '<broker xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/hostname"/></broker>',
            "XInclude is not supported",
        ),
        ("<broker>" + "<a>" * 100_000, "depth"),
        ("<broker brokerName='a\0b'/>", "invalid XML"),
        ("<broker>", "invalid XML"),
        ("no xml", "invalid XML"),
        ("", "invalid XML"),
        (" " * 4_000_001, "exceeds 4000000 characters"),
    ],
    ids=lambda value: value[:40] if len(value) < 60 else None,
)
def test_tricks_are_refused(text, rule):
    with pytest.raises(ConfigurationRefused, match=rule):
        import_definitions(text)


def test_a_doctype_of_early_spring_is_no_trick():
    text = (
        '<!DOCTYPE beans PUBLIC "-//SPRING//DTD BEAN//EN"\n "http://www.springframework.org/dtd/spring-beans.dtd">'
        '<beans>\n<broker brokerName="early" unknown="1"/></beans>'
    )
    config = parse_config(text, {})
    assert config.name == "early"
    assert [finding.line for finding in config.report] == [3]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "utf-8-sig"])
def test_the_encoding_a_file_declares_counts(tmp_path, encoding):
    file = tmp_path / "activemq.xml"
    declared = encoding.removesuffix("-sig")
    file.write_bytes(f'<?xml version="1.0" encoding="{declared}"?><broker brokerName="Käse"/>'.encode(encoding))
    assert read_config(file).name == "Käse"


def test_text_that_came_without_its_bytes_is_what_it_is():
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><broker brokerName="Käse"/>'
    assert parse_config(text, {}).name == "Käse"


def test_comments_and_character_data_are_read_as_xml_has_them():
    text = """<broker><!-- <destinations/> --><plugins><simpleAuthenticationPlugin><users>
      <!-- nobody else --><authenticationUser username="a&amp;b" password="&#120;&lt;" groups="g"/>
    </users></simpleAuthenticationPlugin></plugins></broker>"""
    [user] = parse_config(text, {}).users
    assert (user.name, user.password) == ("a&b", "x<")
    legs = "<![CDATA[]]><queue physicalName='B'/><!-- not this -->"
    found = import_definitions(f"<compositeQueue name='A'><forwardTo>{legs}</forwardTo></compositeQueue>")[0]
    assert len(found.virtual_destinations[0].legs) == 1
