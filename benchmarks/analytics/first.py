"""The first results of an installation, as a worker gives them: in a process that has loaded nothing yet.

`python -m benchmarks.analytics.first SINCE UNTIL N` asks for the traffic between these moments (microseconds since the
epoch) N times, in the environment it is started with, and prints how many seconds each took, from the request to the
stored result.
"""

from __future__ import annotations

import sys
import time

#: Seconds for a server to start, on a machine that does much else.
PATIENCE = 240.0


def main() -> None:
    """Run, and print a line each."""
    before = time.monotonic()
    from analytics.execution import Execution  # loads pyspark, as a worker's child does at its first run
    from analytics.request import AnalysisRequest
    from analytics.session import connected
    from brokerapp.environment import Environment

    since_us, until_us, times = map(int, sys.argv[1:])
    connected(Environment.read(), PATIENCE)
    request = AnalysisRequest("traffic", since_us=since_us, until_us=until_us)
    for number in range(times):
        Execution(f"first-{number}", request, Environment.read(), lambda **_: None).run()
        print(f"{time.monotonic() - before:.3f}", flush=True)
        before = time.monotonic()


if __name__ == "__main__":
    main()
