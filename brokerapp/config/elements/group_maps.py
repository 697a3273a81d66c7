"""Reads `<messageGroupMapFactory>` as the equivalent attribute messageGroupMapFactoryType."""

from __future__ import annotations

from brokerapp.config.parsing.broker_config import ImportOutcome
from brokerapp.config.parsing.document import Element

TAG = "messageGroupMapFactory"

#: Element of a factory -> kind of map, and the attribute that says how large it is.
_FACTORIES = {
    "cachedMessageGroupMapFactory": ("cached", "cacheSize"),
    "messageGroupHashBucketFactory": ("bucket", "bucketCount"),
    "simpleMessageGroupMapFactory": ("simple", None),
}


def read_group_map(element: Element) -> str | None:
    """Read kind and size of a map, e.g. `bucket?bucketCount=64`; None, with a remark, for a custom class."""
    if len(element.children) != 1 or (factory := element.children[0]).tag not in _FACTORIES:
        element.note(ImportOutcome.UNKNOWN, f"unknown type: only {', '.join(_FACTORIES)} are supported")
        return None
    kind, attribute = _FACTORIES[factory.tag]
    size = factory.take(attribute) if attribute else None
    factory.note(ImportOutcome.TAKEN, kind)
    if kind == "bucket" and factory.take("cacheSize") is not None:
        factory.note(ImportOutcome.IGNORED, "no effect: each bucket always has one owner", "cacheSize")
    factory.note_rest()
    return f"{kind}?{attribute}={size.strip()}" if size else kind
