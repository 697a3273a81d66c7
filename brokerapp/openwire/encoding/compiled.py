"""Keeps the function that was compiled for each type of a version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from brokerapp.openwire.encoding.table import Layout, layout

Function = TypeVar("Function", bound=Callable[..., Any])


class CompiledFunctions(dict[int, Function], Generic[Function]):
    """A function for each type of a version, compiled when it is needed first; they call each other through this."""

    def __init__(self, compile_one: Callable[[Layout, Any, bool], Function], version: int, cached: bool) -> None:
        self._compile_one, self._version, self._cached = compile_one, version, cached

    def __missing__(self, data_type: int) -> Function:
        function = self[data_type] = self._compile_one(layout(data_type, self._version), self, self._cached)
        return function
