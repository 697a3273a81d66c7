"""brokerctl's verb `whatif`: runs a what-if analysis of a file.

It uses the Spark server of the installation directly, without a worker: progress is shown in the terminal, and Ctrl-C
cancels it.
"""

from __future__ import annotations

import sys
import time
import uuid
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb
from brokerapp.model import JsonObject
from brokerapp.system.environment import Environment

if TYPE_CHECKING:
    from analytics.requests.request import AnalysisRequest

MOMENT = "a duration such as 15m, 24h or 7d before now, or a time such as 2026-03-29T08:00 (UTC by default)"
#: Rows of each table that are printed; --json has all that a page shows.
PRINTED = 40
#: Headers of columns whose names in the result, which is stored, are not terms of the glossary.
_HEADERS = {
    "what": "metric", "in_force": "active", "waiting_recorded": "backlog recorded", "waiting_draft": "backlog draft",
    "at": "destination", "taken": "matched", "refused": "not matched",
}  # fmt: skip


def add_whatif_verb(verbs: Subparsers) -> None:
    """Add the verb to brokerctl's."""
    parser = add_verb(verbs, "whatif", "run a what-if analysis of an ActiveMQ XML file")
    parser.add_argument("file", type=Path)
    parser.add_argument("--since", default="24h", help=f"{MOMENT} (default: %(default)s)")
    parser.add_argument("--until", default="", help="end of the time range, in the same form (default: now)")


async def whatif(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Compare the definitions of a file with the active ones on recorded traffic."""
    if not args.file.is_file():
        raise RequestRefused(f"file {args.file} not found")
    from analytics.requests.request import AnalysisRequest
    from analytics.requests.time_ranges import read_time_range
    from analytics.requests.whatif_request import (
        WhatIfRequest,  # here, with what reads files: other verbs need not wait for them
    )
    from brokerapp.config import import_definitions

    wanted, report = import_definitions(args.file.read_bytes())
    window = read_time_range(args.since, args.until, time.time_ns() // 1000)
    if window is None:
        raise RequestRefused("--since is empty: expected " + MOMENT)
    trial = WhatIfRequest(await admin.definitions(), wanted, await admin.routing_context(wanted))
    request = AnalysisRequest("whatif", since_us=window.since_us, until_us=window.until_us, trial=trial.to_json())
    result = _executed(request, _environment(args, admin.broker))
    findings = [str(each) for each in report]
    return {**result, "report": findings}, [*findings, *_lines(result)]


def _environment(args: Namespace, broker: str) -> Environment:
    environment = replace(Environment.read(), broker_name=broker)
    return environment if args.data is None else replace(environment, data=args.data.resolve())


def _executed(request: AnalysisRequest, environment: Environment) -> JsonObject:
    from analytics.requests.errors import AnalysisFailed
    from analytics.spark.run_execution import RunExecution  # loads pyspark

    shown = sys.stderr if sys.stderr.isatty() else None  # to a file, each step would be one more line over the last

    def tell(stage: str, progress: float, **_: Any) -> None:
        if shown:
            shown.write(f"\r{progress:4.0%} {stage:<70.70}")

    try:
        return RunExecution(f"brokerctl-{uuid.uuid4()}", request, environment, tell).run()
    except AnalysisFailed as error:
        raise BrokerError(str(error)) from None
    finally:
        if shown:
            shown.write(f"\r{'':<76}\r")


def _lines(result: JsonObject) -> list[str]:
    """Format the result for a terminal."""
    lines = [result["sentence"], *(f"note: {each}" for each in result["notes"])]
    if missing := (result.get("completeness") or {}).get("sentence"):
        lines.append(f"incomplete: {missing}")
    tables = {table["file"].removesuffix(".parquet"): table for table in result["tables"]}
    for name, columns in (
        ("totals", ("what", "in_force", "draft", "difference")),
        ("targets", ("target", "state", "in_force", "draft", "difference", "waiting_recorded", "waiting_draft")),
        ("legs", ("at", "target", "selector", "in_force", "taken", "refused", "unknown")),
    ):
        if name in tables:
            lines += ["", *_table(tables[name], columns)]
    return lines


def _table(table: JsonObject, columns: tuple[str, ...]) -> list[str]:
    names = [each["name"] for each in table["columns"]]
    rows = [[_cell(row[names.index(name)]) for name in columns] for row in table["rows"][:PRINTED]]
    shown = [[_HEADERS.get(name, name) for name in columns], *rows]
    widths = [max(len(row[place]) for row in shown) for place in range(len(columns))]
    is_number = [name not in ("what", "target", "state", "at", "selector") for name in columns]
    lines = [
        "  ".join(
            f"{text:>{width}}" if number else f"{text:<{width}}"
            for text, width, number in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in shown
    ]
    more = table["total_rows"] - len(rows)
    return lines + ([f"... and {more} more (use --json for all)"] if more > 0 else [])


def _cell(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
