"""Reports: tables of what was measured, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.comparison.latency import LatencyResult
from benchmarks.comparison.memory import BARS, MemoryResult
from benchmarks.comparison.rounds import Result
from benchmarks.scenarios.rows import Scenario

#: The one whose rate is compared with the others'.
OURS = "sluice"

Results = Mapping[str, Result]

FIGURES_HEAD = (
    "scenario", "broker", "deliveries/s", "lowest", "highest",
    "broker CPU", "of it the store", "generator CPU", "memory",
)  # fmt: skip
LATENCY_HEAD = ("broker", "messages/s", "median", "99th percentile", "our median is", "our 99th is")
MEMORY_HEAD = ("broker", "before", "with the messages", "ours is", "bar")


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


def summary(found: Sequence[tuple[Scenario, Results]]) -> tuple[list[str], list[list[str]]]:
    """A head, and a row for each scenario: our rate as a multiple of the others', the bars, CPU of a delivery."""
    others = list(dict.fromkeys(each.peer for _, results in found for each in results.values() if each.peer != OURS))
    head = ["row", *(cell for peer in others for cell in (f"× {peer}", "bar"))]
    head += [f"CPU of a delivery, {peer}" for peer in (OURS, *others)]
    return head, [_summary(scenario, results, others) for scenario, results in found]


def _summary(scenario: Scenario, results: Results, others: Sequence[str]) -> list[str]:
    rates = {name: each.rate for name, each in results.items() if each.rate}
    row = [scenario.name]
    for peer in others:
        ratio = rates[OURS] / rates[peer] if {OURS, peer} <= rates.keys() else None
        row += ["" if ratio is None else f"{ratio:.1f}", _verdict(ratio, scenario.bars.get(peer))]
    for peer in (OURS, *others):
        row.append(f"{results[peer].median(lambda each: each.broker_cpu_us):.1f} us" if peer in rates else "")
    return row


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
    """A row for each broker: MiB before and while the messages wait, how many times that ours is, and the bar."""
    ours = results.get(OURS)
    rows = []
    for each in results.values():
        if each.failure:
            rows.append((each.peer, f"{each.before / 2**20:.0f} MiB", "failed", "", ""))
            continue
        ratio = ours.waiting / each.waiting if ours and not ours.failure and ours is not each else None
        rows.append(
            (
                each.peer,
                f"{each.before / 2**20:.0f} MiB",
                f"{each.waiting / 2**20:.0f} MiB",
                "" if ratio is None else f"{ratio:.2f} times",
                _share_verdict(ratio, BARS.get(each.peer)),
            )
        )
    return rows


def _below(ours: float | None, other: float) -> str:
    if ours is None:
        return ""
    return "below" if ours < other else "not below"


def _verdict(ratio: float | None, bar: float | None) -> str:
    if bar is None:
        return ""
    return f"{bar:g} {'reached' if ratio is not None and ratio >= bar else 'missed'}"


def _share_verdict(ratio: float | None, bar: float | None) -> str:
    """The verdict where less is better."""
    if bar is None:
        return ""
    return f"below {bar:g} {'reached' if ratio is not None and ratio < bar else 'missed'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns lined up."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [_line(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, _line("-" * width for width in widths))
    return "\n".join(text)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
