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


def random_properties(random: Random, share: float = 1.0):
    """Return properties of any type; each is missing now and then where the share is less than 1."""
    found = {}
    for name in PROPERTIES:
        if random.random() < share:
            type = random.choice(list(VALUES))
            found[name] = type, random.choice(VALUES[type])
    return found


def random_jms_headers(random: Random):
    """Return the headers of a message of a JMS client; properties and headers are missing now and then."""
    others = {name: random.choice(values) for name, values in HEADERS.items() if name not in PROPERTIES}
    kept = {name: text for name, text in others.items() if random.random() < 0.7}
    return jms_headers(random_properties(random, 0.7), **kept)
