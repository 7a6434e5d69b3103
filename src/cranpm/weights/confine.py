"""A process that gives up everything but computing: for opening what cannot be trusted.

After `confine()` the kernel answers every call that is not on a short list with "not permitted": no file, socket,
process or signal can be opened, started, changed or sent. Files that are open already stay readable and writable.
Memory, time and the size of outputs are limited.
"""

import ctypes
import platform
import resource
import struct
from collections.abc import Sequence
from pathlib import Path

GIGABYTE = 2**30
SECONDS = 600
_PROCESSORS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Kinds of processor, with their number in the kernel's audit."""
_ALLOWED_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "exit": (60, 93),
    "gettid": (186, 178),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "exit_group": (231, 94),
    "newfstatat": (262, 79),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
}
"""The calls that remain, with their numbers on each kind of processor."""
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def confine(input_bytes: int) -> None:
    """Give up all but computing; memory and output in proportion to the input."""
    if platform.machine() not in _PROCESSORS:
        raise OSError(f"confinement is known for {' and '.join(_PROCESSORS)}, not for {platform.machine()}")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    for kind, limit in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + 4 * input_bytes + GIGABYTE),
        (resource.RLIMIT_FSIZE, input_bytes + GIGABYTE),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    column = list(_PROCESSORS).index(platform.machine())
    _filter_calls(_PROCESSORS[platform.machine()], [numbers[column] for numbers in _ALLOWED_CALLS.values()])


def _filter_calls(processor: int, allowed: Sequence[int]) -> None:
    """Install a seccomp filter: the listed calls pass, others fail with EPERM."""
    steps = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 1, 0, processor), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    for call in allowed:
        steps += [(_JUMP_IF_EQUAL, 0, 1, call), (_RETURN, 0, 0, _ALLOW)]
    steps.append((_RETURN, 0, 0, _REFUSE))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "this kernel cannot confine a process (seccomp)")
