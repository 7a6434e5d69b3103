"""Freed memory is kept for the next large array, and given back when asked."""

import resource

import numpy as np

from cranpm.core.allocator import give_back, keep_freed_memory
from cranpm.core.machine import forget_peak_memory, peak_memory


def faults_of_large_arrays() -> int:
    """Pages that the system had to bring while one large array after the other was filled."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        np.ones(2**23)  # 64 MB, 16384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_large_arrays_use_the_memory_of_those_before_them():
    assert keep_freed_memory()
    np.ones(2**23)
    assert faults_of_large_arrays() < 3 * 16384  # fresh pages for each would be eight times as many


def test_what_is_kept_can_be_given_back():
    keep_freed_memory()
    np.ones(2**27)
    forget_peak_memory()
    small = peak_memory()
    block = np.ones(2**27)
    assert peak_memory() > small + 0.9
    del block
    give_back()
    forget_peak_memory()
    assert peak_memory() < small + 0.2
