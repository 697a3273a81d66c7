"""Selectors: SQL-92 conditions on the headers of a message, as JMS has them, and on bodies of XML.

`compile_selector(text)` is the one entrance. A selector has one tree (`tree.py`) and three readers of it: the predicate
of the broker (`evaluate.py`), the Spark column of the analyses and the explanation for people (`explain.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from brokerapp.selectors.evaluate import compile_predicate
from brokerapp.selectors.parser import parse
from brokerapp.selectors.strict import apply_strict_typing
from brokerapp.selectors.tokens import CONVERT
from brokerapp.selectors.tree import SelectorNode, properties
from brokerapp.selectors.values import parse_number
from brokerapp.selectors.xml_body import SelectorView, XmlBody

__all__ = ["Selector", "SelectorView", "XmlBody", "compile_selector", "parse_number"]

#: Selectors kept compiled.
CACHED_SELECTORS = 8192


class Selector:
    """A compiled selector. Equal texts give the same object as long as it is cached."""

    __slots__ = ("evaluate", "properties", "text", "tree")

    #: Text as given, prefixes included.
    text: str
    tree: SelectorNode
    #: Names of the properties and JMS identifiers it reads.
    properties: frozenset[str]
    #: From a message's headers (`Seen`: with its body) to True, False or None (unknown). Never raises.
    evaluate: Callable[[Mapping[str, str]], bool | None]

    def __init__(self, text: str, tree: SelectorNode) -> None:
        self.text, self.tree = text, tree
        self.properties, self.evaluate = properties(tree), compile_predicate(tree)

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Return whether the selector is TRUE for a message with these STOMP headers."""
        return self.evaluate(headers) is True

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


@lru_cache(maxsize=CACHED_SELECTORS)
def compile_selector(text: str, strict: bool = False) -> Selector:
    """Compile a selector; `strict`: text headers do not stand for numbers and truths.

    Raises SelectorSyntaxError, also for a text that holds no condition at all. A text with ActiveMQ's prefix that asks
    for conversion is never strict.
    """
    tree = parse(text)
    return Selector(text, apply_strict_typing(tree) if strict and not text.startswith(CONVERT) else tree)
