"""Run chaos by hand, `python -m tests.chaos --seed N --seconds S`, and print which faults were survived."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.plan import FaultKind
from tests.chaos.run import run
from tests.chaos.work import FLOWS


def main() -> int:
    """Exit status 0 when every promise was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="gives the plan: the same each time")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which things break")
    parser.add_argument("--runs", type=int, default=1, help="this seed and those after it")
    parser.add_argument(
        "--kinds", nargs="*", type=str.upper, choices=[each.name for each in FaultKind], help="only these"
    )
    parser.add_argument("--flows", nargs="*", default=(), choices=[each.name for each in FLOWS], help="only these")
    parser.add_argument("--shards", type=int, default=1, help="stores of each broker")
    parser.add_argument("--keep", type=Path, help="a folder for the stores and logs of the brokers")
    options = parser.parse_args()
    kinds = [FaultKind[each] for each in options.kinds or FaultKind.__members__]
    failed = 0
    for seed in range(options.seed, options.seed + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            kept = options.keep / f"seed-{seed}" if options.keep else Path(folder) / "environment"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            outcome = run(seed, options.seconds, kept, kinds, options.flows, options.shards)
        sys.stdout.write(f"{outcome}\n")
        if options.keep:
            (kept / "outcome.txt").write_text("\n".join([*map(str, outcome.faults), str(outcome)]) + "\n")
        sys.stdout.flush()
        failed += not outcome.is_fine
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
