"""Freed memory is kept for the next tensor: fresh pages for every large one cost a third of a training step."""

import ctypes
from functools import cache

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""Numbers that glibc gives to these parameters of mallopt."""
LARGEST = 2**31 - 1
PAD = 64 * 2**20


@cache
def keep_freed_memory() -> bool:
    """Ask the C library not to hand large blocks back to the system; False where it is not glibc."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(name, value) for name, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST), (TOP_PAD, PAD)))
