"""What is said of the machine on which something was measured."""

import pytest

from cranpm.core import machine
from cranpm.network.precision import has_bf16

X86 = "processor : 0\nmodel name\t: Some CPU 9000\nflags\t: fpu avx2 avx512f avx512_bf16\n"
ARM = "processor : 0\nFeatures : fp asimd sve bf16\n"


@pytest.mark.parametrize(
    ("text", "name", "units", "bf16"),
    [
        (X86, "x Some CPU 9000", "avx2, avx512f, avx512_bf16", True),
        (X86.replace(" avx512_bf16", ""), "x Some CPU 9000", "avx2, avx512f", False),
        (ARM, "x ", "asimd, sve, bf16", True),
        ("", "x ", "unknown", False),
    ],
)
def test_the_processor_is_named_with_its_vector_units(tmp_path, monkeypatch, text, name, units, bf16):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    if text:
        (tmp_path / "cpuinfo").write_text(text)
    facts = machine.processor()
    assert name in facts["processor"]
    assert facts["vector units"] == units
    assert has_bf16() is bf16
