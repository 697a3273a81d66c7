"""Selectors: SQL-92 conditions on the headers of a message, as JMS has them, and on bodies of XML.

`compile_selector(text)` is the one entrance. A selector has one tree (`tree.py`) and three readers of it: the
predicates of the broker (`untyped.py`, `typed.py`), the Spark column of the analyses, and the explanation for people
(`explain.py`).

What a message is decides how it is evaluated: the headers of a STOMP client are text, which is read as what it is
compared with; the properties of a JMS client have types, which are compared as ActiveMQ does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.selector_prefixes import asks_for_conversion, condition_of
from brokerapp.selectors.matching.xml_body import SelectorView, XmlBody
from brokerapp.selectors.parser import parse
from brokerapp.selectors.strict import apply_strict_typing
from brokerapp.selectors.tree import SelectorNode, properties
from brokerapp.selectors.typed import compile_typed_predicate
from brokerapp.selectors.untyped import compile_predicate
from brokerapp.selectors.values import parse_number

__all__ = ["Selector", "SelectorView", "XmlBody", "compile_selector", "parse_number"]

#: Selectors kept compiled.
CACHED_SELECTORS = 8192

Predicate = Callable[[Mapping[str, str]], bool | None]


class Selector:
    """A compiled selector. Equal texts give the same object as long as it is cached."""

    __slots__ = ("_of_jms", "_of_text", "properties", "text", "tree", "written")

    #: Text as given, prefixes included.
    text: str
    #: What is evaluated on headers that are text; on typed properties it is the tree as `written`.
    tree: SelectorNode
    written: SelectorNode
    #: Names of the properties and JMS identifiers it reads.
    properties: frozenset[str]

    def __init__(self, text: str, tree: SelectorNode, written: SelectorNode | None = None) -> None:
        self.text, self.tree, self.written = text, tree, tree if written is None else written
        self.properties = properties(tree)
        self._of_text: Predicate = compile_predicate(tree)
        self._of_jms: Predicate | None = None  # compiled when the first message of a JMS client comes

    @property
    def converts(self) -> bool:
        """Whether it reads typed text as what it is compared with."""
        return asks_for_conversion(self.text)

    def evaluate(self, headers: Mapping[str, str]) -> bool | None:
        """Return TRUE, FALSE or None (unknown) for a message with these headers (`SelectorView`: with its body)."""
        return self._typed(headers) if JMS_HEADER in headers else self._of_text(headers)

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Return whether the selector is TRUE for a message with these headers."""
        return (self._typed(headers) if JMS_HEADER in headers else self._of_text(headers)) is True

    def _typed(self, headers: Mapping[str, str]) -> bool | None:
        if self._of_jms is None:
            self._of_jms = compile_typed_predicate(self.written, self.converts)
        return self._of_jms(headers)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


@lru_cache(maxsize=CACHED_SELECTORS)
def compile_selector(text: str, strict: bool = False) -> Selector:
    """Compile a selector; `strict`: text headers do not stand for numbers and truths.

    Raises SelectorSyntaxError, also for a text that holds no condition at all. A text with ActiveMQ's prefix that asks
    for conversion is never strict.
    """
    written = parse(condition_of(text))  # so that an error names the position in what a STOMP client wrote
    strict = strict and not asks_for_conversion(text)
    return Selector(text, apply_strict_typing(written) if strict else written, written)
