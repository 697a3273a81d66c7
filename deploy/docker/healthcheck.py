#!/usr/bin/env python3
"""Exit with 0 if the page at the URL in the first argument answers 200, else with 1 and the reason."""

import sys
import urllib.error
import urllib.request

SECONDS = 4  # less than the timeout of HEALTHCHECK, so that the reason is printed

try:
    urllib.request.urlopen(sys.argv[1], timeout=SECONDS).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
