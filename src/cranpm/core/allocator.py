"""Freed memory is kept for the next tensor: fresh pages for every large one cost a third of a training step."""

import ctypes
from functools import cache

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""Numbers that glibc gives to these parameters of mallopt."""
LARGEST = 2**31 - 1
PAD = 64 * 2**20
KEPT = ((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST), (TOP_PAD, PAD))


@cache
def _library() -> ctypes.CDLL | None:
    """The GNU C library, where it is the one in use."""
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


@cache
def keep_freed_memory() -> bool:
    """Ask the C library not to hand large blocks back to the system; False where it is not glibc."""
    library = _library()
    if library is None:
        return False
    return all(library.mallopt(name, value) for name, value in KEPT)


def give_back() -> None:
    """Hand back what is kept, for example before memory is measured."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)
