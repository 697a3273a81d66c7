"""Generate messages of JMS clients with typed properties, as selectors see them."""

from random import Random

from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType, property_header, property_text
from tests.brokerapp.selectors.trees import HEADERS, PROPERTIES, TEXTS

#: Values by type; those of None are strings.
VALUES = {
    None: TEXTS,
    PropertyType.BYTE: [5, -3, 127],
    PropertyType.SHORT: [5, -3, 32767],
    PropertyType.INT: [5, 7, -3, 1000, 2**31 - 1],
    PropertyType.LONG: [5, -3, 9999999999, 2**63 - 1],
    PropertyType.FLOAT: [5.0, 2.5, 0.10000000149011612, -3.0],
    PropertyType.DOUBLE: [5.0, 2.5, 0.1, 1e3, 1e200, float("nan"), float("inf")],
    PropertyType.BOOLEAN: [True, False],
}


def jms_headers(properties, **others):
    """Return the headers of a message with these properties: each a type and a value."""
    types = {name: type for name, (type, _) in properties.items() if type is not None}
    lines = {property_header(name): property_text(type, value) for name, (type, value) in properties.items()}
    return {**others, **lines, JMS_HEADER: JmsForm(JmsKind.TEXT, types).header_value()}


def random_types(random: Random):
    """Return a type for each property."""
    return {name: random.choice(list(VALUES)) for name in PROPERTIES}


def random_properties(random: Random, types):
    """Return properties of these types."""
    return {name: (type, random.choice(VALUES[type])) for name, type in types.items()}


def random_jms_headers(random: Random, types=None):
    """Return the headers of a message of a JMS client; properties and headers are missing now and then."""
    others = {name: random.choice(values) for name, values in HEADERS.items() if name not in PROPERTIES}
    given = random_properties(random, types or random_types(random))
    kept = {name: value for name, value in given.items() if types or random.random() < 0.7}
    return jms_headers(kept, **{name: text for name, text in others.items() if random.random() < 0.7})
