"""Write metrics in the text formats of Prometheus and OpenMetrics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
GAUGE, COUNTER = "gauge", "counter"

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """One value of a metric. `labels` are as `label_text` writes them."""

    value: float
    labels: str = ""


def family(name: str, type: str, help: str) -> str:
    """Return the lines that describe a metric."""
    return f"# HELP {name} {help}\n# TYPE {name} {type}\n"


def metric(name: str, type: str, help: str, samples: Iterable[Sample], suffix: str = "") -> str:
    """Return a metric with its samples, whose names end with `suffix`."""
    lines = [f"{name}{suffix}{labels} {number(value)}\n" for value, labels in samples]
    return family(name, type, help) + "".join(lines)


def suffix(type: str) -> str:
    """Return what the names of samples of this type end with in OpenMetrics."""
    return "_total" if type == COUNTER else ""


def label_text(labels: Mapping[str, str]) -> str:
    """Return labels as they follow the name of a sample."""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items()) + "}"


def number(value: float) -> str:
    """Return a number as text: six digits, whole numbers in full."""
    return f"{value:.6g}" if isinstance(value, float) else str(int(value))
