"""Compare selectors on typed properties with ActiveMQ's own classes, for random selectors and messages."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from random import Random

import pytest

from brokerapp.model.jms.properties import property_text
from brokerapp.selectors import compile_selector
from brokerapp.selectors.render import render_clause
from brokerapp.selectors.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    PropertyRef,
    children,
    properties,
)
from tests.brokerapp.selectors.trees import PROPERTIES, random_condition
from tests.brokerapp.selectors.typed_messages import jms_headers, random_properties, random_types
from tests.jms.java_programs import compile_program, needs_java_client

pytestmark = [needs_java_client, pytest.mark.slow]
MESSAGES, SELECTORS, SEED = 150, 800, 20261123
ANSWERS = {"T": True, "F": False, "?": None}


@pytest.fixture(scope="module")
def java():
    """The program that evaluates selectors with ActiveMQ's classes."""
    command = compile_program("TypedSelectors")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    yield process
    process.stdin.close()
    process.wait(timeout=20)
    process.stdout.close()


def encoded(text: str) -> str:
    return "=" + b64encode(text.encode()).decode()


def ask(java, selector: str) -> str:
    """Return Java's answer for each message."""
    java.stdin.write(f"s {encoded(selector)}\n")
    return java.stdout.readline().strip()


def is_comparable(node) -> bool:
    """Return whether ActiveMQ means the same.

    It compares numbers in lists only with those of the same type, tells minus zero from zero, and takes what is equal
    to an unknown value for FALSE.
    """
    match node:
        case Call("MAKELIST") | Arithmetic("%") | Literal(0):
            return False
        case Compare("=" | "<>", _, right) if not isinstance(right, (Literal, PropertyRef)):
            return False
    return all(map(is_comparable, children(node)))


def spelled(node) -> str:
    """Return the text with all parentheses, as ActiveMQ lets NOT bind tighter."""
    match node:
        case And(operands):
            return f"({' AND '.join(map(spelled, operands))})"
        case Or(operands):
            return f"({' OR '.join(map(spelled, operands))})"
        case Not(operand):
            return f"(NOT ({spelled(operand)}))"
        case Compare(operator, left, right) | Arithmetic(operator, left, right):
            return f"({spelled(left)} {operator} {spelled(right)})"
        case Between(value, low, high):
            return f"({spelled(value)} BETWEEN {spelled(low)} AND {spelled(high)})"
        case IsNull(operand):
            return f"({spelled(operand)} IS NULL)"
        case Negative(operand):
            return f"(- {spelled(operand)})"
    return render_clause(node)


def test_typed_properties_are_selected_as_activemq_does(java):
    random = Random(SEED)
    heads = []
    for _ in range(MESSAGES):
        found = random_properties(random, random_types(random))
        heads.append(jms_headers(found))
        fields = (
            f"{name} {type or 's'} {encoded(property_text(type, value))}" for name, (type, value) in found.items()
        )
        java.stdin.write(f"m {' '.join(fields)}\n")
    compared, wrong = 0, []
    for _ in range(SELECTORS):
        tree = random_condition(random, 2)
        if not properties(tree) <= set(PROPERTIES) or not is_comparable(tree):
            continue
        text = spelled(tree)
        selector = compile_selector(text)
        for head, answer in zip(heads, ask(java, text)[-MESSAGES:], strict=True):
            if answer != "!":  # what ActiveMQ cannot compute is unknown
                compared += 1
                if selector.evaluate(head) is not ANSWERS[answer]:
                    wrong.append((text, head, answer))
    assert wrong == []
    assert compared > 1000
