"""Reports: tables of what was measured, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.comparison.latency import LatencyResult
from benchmarks.comparison.memory import MemoryResult
from benchmarks.comparison.rounds import Result
from benchmarks.scenarios.rows import Scenario

#: The one whose rate is compared with the others'.
OURS = "sluice"

Results = Mapping[str, Result]

FIGURES_HEAD = (
    "scenario", "broker", "deliveries/s", "lowest", "highest",
    "broker CPU", "of it the store", "generator CPU", "memory",
)  # fmt: skip
RATIOS_HEAD = ("scenario", "to", "ratio", "bar")
LATENCY_HEAD = ("broker", "messages/s", "median", "99th percentile", "our median is", "our 99th is")
MEMORY_HEAD = ("broker", "before", "with the messages", "ours is")


def figures(scenario: Scenario, results: Results) -> list[tuple[str, ...]]:
    """A row for each broker: the median rate with the lowest and highest, CPU for a delivery, resident memory."""
    return [_figures(scenario, each) for each in results.values()]


def _figures(scenario: Scenario, result: Result) -> tuple[str, ...]:
    if not result.rounds:
        return (scenario.name, result.peer, "failed", *("",) * 6)
    rates = [each.outcome.rate for each in result.rounds]
    return (
        scenario.name,
        result.peer,
        f"{result.rate:,.0f}",
        f"{min(rates):,.0f}",
        f"{max(rates):,.0f}",
        f"{result.median(lambda each: each.broker_cpu_us):.1f} us",
        f"{store:.1f} us" if (store := result.median(lambda each: each.store_cpu_us)) else "",
        f"{result.median(lambda each: each.generator_cpu_us):.1f} us",
        f"{result.median(lambda each: each.resident_bytes) / 2**20:.0f} MiB",
    )


def ratios(scenario: Scenario, results: Results) -> list[tuple[str, ...]]:
    """A row for each other broker: how many times its rate ours is, and whether that reaches the bar."""
    ours = results.get(OURS)
    if ours is None or ours.rate is None:
        return []
    return [
        (
            scenario.name,
            other.peer,
            f"{ours.rate / other.rate:.1f}",
            _verdict(ours.rate / other.rate, scenario.bars.get(other.peer)),
        )
        for other in results.values()
        if other is not ours and other.rate
    ]


def latencies(results: Mapping[str, LatencyResult]) -> list[tuple[str, ...]]:
    """A row for each broker: what it showed, and whether ours is below it."""
    ours = results.get(OURS)
    return [_latency(each, ours) for each in results.values()]


def _latency(result: LatencyResult, ours: LatencyResult | None) -> tuple[str, ...]:
    if not result.rounds:
        return (result.peer, "failed", *("",) * 4)
    compared = ours if ours is not None and ours.rounds and ours is not result else None
    return (
        result.peer,
        f"{result.rate:,.0f}",
        f"{result.median_ms:.2f} ms",
        f"{result.p99_ms:.2f} ms",
        _below(compared and compared.median_ms, result.median_ms),
        _below(compared and compared.p99_ms, result.p99_ms),
    )


def memory(results: Mapping[str, MemoryResult]) -> list[tuple[str, ...]]:
    """A row for each broker: MiB before and while the messages wait, and whether ours is below it."""
    ours = results.get(OURS)
    rows = []
    for each in results.values():
        if each.failure:
            rows.append((each.peer, f"{each.before / 2**20:.0f} MiB", "failed", ""))
            continue
        compared = ours.waiting if ours is not None and not ours.failure and ours is not each else None
        rows.append(
            (
                each.peer,
                f"{each.before / 2**20:.0f} MiB",
                f"{each.waiting / 2**20:.0f} MiB",
                _below(compared, each.waiting),
            )
        )
    return rows


def _below(ours: float | None, other: float) -> str:
    if ours is None:
        return ""
    return "below" if ours < other else "not below"


def _verdict(ratio: float, asked: float | None) -> str:
    if asked is None:
        return ""
    return f"{asked:g} {'reached' if ratio >= asked else 'missed'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns lined up."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [_line(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, _line("-" * width for width in widths))
    return "\n".join(text)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
