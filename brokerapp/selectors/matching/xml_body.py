"""XPATH: conditions on XML bodies of messages, evaluated in a separate process (brokerapp.selectors.xpath).

A body that is not XML, has a document type declaration or is too large does not match, and neither does one for which
the expression fails or exceeds its time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from brokerapp.selectors.matching.overruns import SlowConditionTracker

if TYPE_CHECKING:
    from brokerapp.selectors.xpath.xpath_process import XPathProcess

#: Bytes a body may have to be looked into: a few milliseconds of parsing, during which the node does nothing else.
MAX_BODY = 1 << 20
#: Seconds of the processor's time that an expression may take at most. Some tens of microseconds are usual.
SECONDS = 0.05
#: Expressions kept: who parses a selector, evaluates or explains it asks for the same one.
CACHED_EXPRESSIONS = 1024


def _xpath_process() -> XPathProcess:
    """Return the process that evaluates XPath, imported on demand: most selectors do not need it."""
    from brokerapp.selectors.xpath.xpath_process import XPATH_PROCESS

    return XPATH_PROCESS


class XmlBody:
    """A message's body, looked at once, however many selectors look into it one after the other."""

    __slots__ = ("data", "is_bytes", "is_xml")

    def __init__(self, data: bytes, headers: Mapping[str, str]) -> None:
        self.data = data
        self.is_bytes = "content-length" in headers  #: what was sent as bytes says its encoding itself; text is UTF-8
        self.is_xml: bool | None = None if len(data) <= MAX_BODY else False  #: None: nobody looked yet

    @property
    def is_readable(self) -> bool:
        """Whether it is XML, and can be looked into."""
        return _xpath_process().is_xml(self)


class SelectorView(dict[str, str]):
    """A message's headers as its selectors see them, and its body for those that look into it."""

    __slots__ = ("body",)

    def __init__(self, headers: Mapping[str, str], body: XmlBody | bytes) -> None:
        super().__init__(headers)
        self.body = body if isinstance(body, XmlBody) else XmlBody(body, headers)


@lru_cache(maxsize=CACHED_EXPRESSIONS)
def compile_xpath(expression: str) -> Callable[[Mapping[str, str]], bool]:
    """Compile an expression to a condition on a message; without a body it is FALSE.

    Raises ValueError for what is no XPath 1.0 and for functions, variables and prefixes that nobody defined, where that
    shows in any document.
    """
    overruns = SlowConditionTracker(f"XPATH {expression!r}")
    moment = overruns.moment(SECONDS)
    try:
        _xpath_process().check(expression, moment)
    except TimeoutError as wrong:
        overruns.happened(moment)
        raise ValueError("evaluation takes too long") from wrong

    def holds(seen: Mapping[str, str]) -> bool:
        if not isinstance(seen, SelectorView) or overruns.is_disabled:
            return False
        moment = overruns.moment(SECONDS)
        try:
            truth = _xpath_process().holds(expression, seen.body, moment)
        except TimeoutError:
            overruns.happened(moment)
            return False
        overruns.record_success()
        return truth

    return holds
