"""Test the form in which Java writes pairs of names and values."""

import pytest

from brokerapp.openwire.java_properties import parse_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1\nb : 2\nc 3\nd=\ne", {"a": "1", "b": "2", "c": "3", "d": "", "e": ""}),
        ("# no\n! neither\n\n  a.b = x y \n", {"a.b": "x y "}),
        ("a = one \\\n   two\n", {"a": "one two"}),
        ("a=ends\\\\\nb=1", {"a": "ends\\", "b": "1"}),
        ("a\\:b\\=c\\ d=x:y=z", {"a:b=c d": "x:y=z"}),
        ("a=\\u00e4\\t\\q", {"a": "ä\tq"}),
        ("a=\\ud83d\\ude00 \\ud83d", {"a": "\U0001f600 \ufffd"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
    ],
)
def test_pairs_are_read_as_java_reads_them(text, pairs):
    assert parse_properties(text) == pairs
