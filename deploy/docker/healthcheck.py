#!/usr/bin/env python3
"""Exit with 0 if the page at the URL in the first argument answers 200, else with 1 and the reason."""

import ssl
import sys
import urllib.error
import urllib.request

SECONDS = 4  # less than the timeout of HEALTHCHECK, so that the reason is printed

# A console with a certificate leads to HTTPS, by the address of the container, for which no certificate is made out.
any_certificate = ssl.create_default_context()
any_certificate.check_hostname, any_certificate.verify_mode = False, ssl.CERT_NONE

try:
    urllib.request.urlopen(sys.argv[1], timeout=SECONDS, context=any_certificate).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
