"""Number formats for computing, and whether this processor has them."""

import time
from typing import Literal

import torch
from torch.nn import functional

from cranpm.core.errors import CranpmError
from cranpm.core.machine import processor_flags

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
BF16_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")
"""Of x86 and of ARM."""
ROUNDS = 3
SIDES = (1024, 2048, 4096)


def gemm(side: int, dtype: torch.dtype, rounds: int = ROUNDS) -> float:
    """GFLOP/s of a product of two square matrices, as layers do it (x Wᵀ); best of some rounds after one to warm up."""
    one, two = (torch.randn(side, side).to(dtype) for _ in range(2))
    best = 0.0
    for _ in range(rounds + 1):
        start = time.perf_counter()
        functional.linear(one, two)
        best = max(best, 2e-9 * side**3 / (time.perf_counter() - start))
    return best


def gemm_peak(precision: Precision) -> float:
    """The best GFLOP/s of this machine in matrix products, over some sizes."""
    return max(gemm(side, DTYPES[precision]) for side in SIDES)


def has_bf16() -> bool:
    """Whether this processor computes in bf16; elsewhere it is imitated, slower than fp32."""
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported()
    return not processor_flags().isdisjoint(BF16_FLAGS)


def parse_precision(name: str) -> Precision:
    """A precision by name."""
    for precision in DTYPES:
        if precision == name:
            return precision
    raise CranpmError(expected=f"a precision: {', '.join(DTYPES)}", found=name, remedy="For example --precision fp32.")


def best_precision() -> Precision:
    """bf16 where the machine has it, else fp32."""
    return "bf16" if has_bf16() else "fp32"
