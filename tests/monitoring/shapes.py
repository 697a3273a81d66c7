"""Reduce documents to their shapes, without numbers, texts and generated ids."""

from __future__ import annotations

import re
from typing import Any

#: Parts of names of beans that no two brokers have alike.
_OWN = re.compile(r"((?:consumerId|producerId)=(?!Durable)|connectionName=tcp_)[^,]*")


def general(name: str) -> str:
    """A bean's name without what only its own broker says."""
    return _OWN.sub(r"\1*", name)


def shape(value: Any) -> Any:
    """Objects keep their keys, lists the kinds of what is in them, and all else becomes the name of its type."""
    match value:
        case dict():
            return {general(name): shape(each) for name, each in sorted(value.items())}
        case list():
            kinds = []
            for each in map(shape, value):
                if each not in kinds:
                    kinds.append(each)
            return kinds
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "whole"
        case float():
            return "decimal"
    return "text"


def lacks(recorded: Any, ours: Any, where: str = "") -> list[str]:
    """What a recorded shape has and ours has not, or has otherwise. More than was recorded is no fault."""
    if "null" in (recorded, ours):
        return []
    if isinstance(recorded, dict) and isinstance(ours, dict):
        return [
            lack
            for name, each in recorded.items()
            for lack in (lacks(each, ours[name], f"{where}/{name}") if name in ours else [f"{where}/{name} is missing"])
        ]
    if isinstance(recorded, list) and isinstance(ours, list):
        missing = [f"{where}[] is empty"] if recorded and not ours else []
        return missing + [lack for each in ours for lack in lacks(recorded[0], each, f"{where}[]")] if recorded else []
    return [] if recorded == ours else [f"{where} is {ours}, not {recorded}"]
