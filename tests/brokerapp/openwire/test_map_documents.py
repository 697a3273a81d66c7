"""Values of map messages as the documents in which STOMP clients have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.model.jms.transformations import read_document, write_document
from brokerapp.openwire.map_documents import map_document, map_values
from brokerapp.openwire.marshalled_values import Byte, Char, Long, Short

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10)
words = st.text("abc", min_size=1, max_size=5)
plain = (
    texts
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.integers(-(2**63), 2**63 - 1).map(Long)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | st.integers(-128, 127).map(Byte)
    | st.sampled_from("abé").map(Char)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.binary(max_size=8)
    | st.none()
)
values = st.recursive(plain, lambda inner: st.lists(texts, max_size=4) | st.dictionaries(words, inner, max_size=3))


def typed(value):
    """Return a value with the types in it, which are not part of equality."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    return type(value), value


@pytest.mark.parametrize("form", ["jms-map-json", "jms-map-xml"])
@given(found=st.dictionaries(words, values, max_size=5))
def test_a_map_that_a_stomp_client_sends_back_is_the_same(form, found):
    named, text = write_document(form, "map", map_document(found))
    assert named == form
    assert typed(map_values(read_document(form, text.encode()))) == typed(found)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, '{"map":""}'),
        ({"name": "x", "n": 5}, '{"map":{"entry":[{"string":["name","x"]},{"string":"n","int":5}]}}'),
        ({"b": True}, '{"map":{"entry":{"string":"b","boolean":true}}}'),
        ({"l": ["a", 1], "y": b"\1\2\3"}, '{"map":{"entry":[{"string":"l","list":{"string":"a","int":1}},'
         '{"string":"y","byte-array":"AQID"}]}}'),
        ({"price": 1, "x": 1, "name": 1, "count": 1, "ok": 1}, '{"map":{"entry":[{"string":"x","int":1},'
         '{"string":"name","int":1},{"string":"count","int":1},{"string":"ok","int":1},{"string":"price","int":1}]}}'),
        ({"nothing": None}, '{"map":{"entry":{"string":"nothing","null":""}}}'),
    ],
)  # fmt: skip
def test_a_map_is_written_as_activemq_writes_it(values, text):
    assert write_document("jms-json", "map", map_document(values)) == ("jms-map-json", text)


def test_an_unknown_transformation_is_none():
    assert write_document("unknown", "map", map_document({})) is None
    assert read_document("unknown", b"{}") is None


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (("tree", ""), "tree is not a map"),
        (("map", {"entry": {"string": "a"}}), "entries of a name and a value"),
        (("map", {"entry": {"int": [1, 2]}}), "entries of a name and a value"),
        (("map", {"entry": {"string": "a", "java.util.Date": ""}}), "a map cannot hold java.util.Date"),
        (("map", {"entry": {"string": "a", "int": "x"}}), "invalid literal"),
        (("map", {"entry": {"string": "a", "int": {}}}), "is not of the type int"),
        (("map", {"entry": {"string": "a", "byte-array": "%"}}), "base64"),
        (("map", "text"), "holds no elements"),
    ],
)
def test_what_is_no_map_is_refused_with_its_reason(document, sentence):
    with pytest.raises(ValueError, match=sentence):
        map_values(document)
