"""XPATH: a condition on a message's body, where that is XML.

An expression is compiled once, into a transformation that asks `<xsl:if test="..">` of the whole document: in XPath's
own terms that is its truth at the document node, where ActiveMQ asks it too. Nothing outside the body is read: no
entities, no network, no files. A body that is no XML, has a document type declaration or is too large is no match, and
so is one for which the expression cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from lxml import etree

#: Bytes a body may have to be looked into: a few milliseconds of parsing, during which the node does nothing else.
MAX_BODY = 1 << 20
#: Expressions kept compiled: who parses a selector, evaluates or explains it asks for the same one.
CACHED_EXPRESSIONS = 1024

_XSL = "http://www.w3.org/1999/XSL/Transform"
_SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False, "remove_comments": True}
#: A body that was sent as bytes says its encoding itself; text is UTF-8, whatever its declaration says.
_OF_BYTES, _OF_TEXT = etree.XMLParser(**_SAFE), etree.XMLParser(**_SAFE, encoding="utf-8")
_ANY_DOCUMENT = etree.Element("any")


class Body:
    """A message's body, parsed at most once, however many selectors look into it."""

    __slots__ = ("_data", "_document", "_is_bytes", "_parsed")

    def __init__(self, data: bytes, headers: Mapping[str, str]) -> None:
        self._data, self._is_bytes, self._parsed = data, "content-length" in headers, False
        self._document: etree._Element | None = None

    @property
    def document(self) -> etree._Element | None:
        """The root of the document; None when this is not to be looked into."""
        if not self._parsed:
            self._document, self._parsed = _document(self._data, is_bytes=self._is_bytes), True
        return self._document


class Seen(dict[str, str]):
    """A message's headers as its selectors see them, and its body for those that look into it."""

    __slots__ = ("body",)

    def __init__(self, headers: Mapping[str, str], body: Body | bytes) -> None:
        super().__init__(headers)
        self.body = body if isinstance(body, Body) else Body(body, headers)


@lru_cache(maxsize=CACHED_EXPRESSIONS)
def compile_xpath(expression: str) -> Callable[[Mapping[str, str]], bool]:
    """The expression as a condition on what a selector sees; without a body it is FALSE.

    Raises ValueError for what is no XPath 1.0 and for functions, variables and prefixes that nobody defined, where that
    shows in any document.
    """
    test = _transformation(expression)

    def holds(seen: Mapping[str, str]) -> bool:
        document = seen.body.document if isinstance(seen, Seen) else None
        if document is None:
            return False
        try:
            return bool(bytes(test(document)))
        except etree.XSLTApplyError:
            return False

    return holds


def _transformation(expression: str) -> etree.XSLT:
    sheet = etree.Element(f"{{{_XSL}}}stylesheet", version="1.0")
    etree.SubElement(sheet, f"{{{_XSL}}}output", method="text")
    template = etree.SubElement(sheet, f"{{{_XSL}}}template", match="/")
    try:
        etree.SubElement(template, f"{{{_XSL}}}if", test=expression).text = "true"
        test = etree.XSLT(sheet, regexp=False, access_control=etree.XSLTAccessControl.DENY_ALL)
        test(_ANY_DOCUMENT)
    except etree.XSLTParseError as wrong:
        raise ValueError("this is no XPath 1.0") from wrong
    except etree.XSLTApplyError as wrong:
        raise ValueError(str(wrong).lower()) from wrong
    return test


def _document(body: bytes, *, is_bytes: bool) -> etree._Element | None:
    if len(body) > MAX_BODY:
        return None
    try:
        root = etree.fromstring(body, _OF_BYTES if is_bytes else _OF_TEXT)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if root.getroottree().docinfo.doctype else root
