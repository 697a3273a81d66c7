"""x"""

import zlib


def place(family, serving, assigned) -> int:
    return assigned.get(family, sorted(serving)[zlib.crc32(family.encode()) % len(serving)])
