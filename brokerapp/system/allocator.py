"""Let the C library keep freed memory for the next burst instead of returning it to the system at once.

A node at work takes and frees megabytes with every batch. With glibc's defaults the top of the heap goes back to the
system after each and is asked for again page by page: nearly one page fault a message, a fifth of the node's CPU.
"""

from __future__ import annotations

import ctypes

#: Of mallopt(3).
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
#: Free bytes at the top of the heap beyond which they go back: what a few batches take.
TRIM_BYTES = 64 * 1024 * 1024
#: Bytes asked of the system at once.
PAD_BYTES = 4 * 1024 * 1024
#: Size from which a block is mapped by itself and given back when freed; the largest glibc allows.
MAPPED_BYTES = 32 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Tell the C library; whether it understood (others than glibc need not)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    options = {_M_TRIM_THRESHOLD: TRIM_BYTES, _M_TOP_PAD: PAD_BYTES, _M_MMAP_THRESHOLD: MAPPED_BYTES}
    understood = [mallopt(option, value) for option, value in options.items()]
    return all(understood)
