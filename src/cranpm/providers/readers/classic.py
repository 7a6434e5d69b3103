"""How long a NetCDF-3 file must be: its library reads what was cut off as zeros and says nothing."""

import struct
from pathlib import Path

LONGEST_HEADER = 2**22
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}
"""Bytes of a value by its type: byte, char, short, int, float, double."""


class _Header:
    """A walk through the header of the classic format (versions 1 and 2)."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 4
        self.wide = data[3] == 2

    def number(self) -> int:
        (value,) = struct.unpack_from(">I", self.data, self.at)
        self.at += 4
        return int(value)

    def offset(self) -> int:
        (value,) = struct.unpack_from(">Q" if self.wide else ">I", self.data, self.at)
        self.at += 8 if self.wide else 4
        return int(value)

    def name(self) -> None:
        length = self.number()
        self.at += length + -length % 4

    def attributes(self) -> None:
        self.number()
        for _ in range(self.number()):
            self.name()
            kind, count = self.number(), self.number()
            size = SIZES[kind] * count
            self.at += size + -size % 4


def needed_bytes(path: Path) -> int:
    """Bytes up to the end of the last value, from the file's own header."""
    with path.open("rb") as file:
        header = _Header(file.read(LONGEST_HEADER))
    records = header.number()
    header.number()
    lengths = []
    for _ in range(header.number()):
        header.name()
        lengths.append(header.number())
    header.attributes()
    header.number()
    fixed_end = 0
    starts: list[int] = []
    growing: list[int] = []
    for _ in range(header.number()):
        header.name()
        dimensions = [header.number() for _ in range(header.number())]
        header.attributes()
        kind = header.number()
        header.number()
        begin = header.offset()
        grows = bool(dimensions) and lengths[dimensions[0]] == 0
        count = 1
        for dimension in dimensions[1:] if grows else dimensions:
            count *= lengths[dimension]
        size = SIZES[kind] * count
        if grows:
            starts.append(begin)
            growing.append(size)
        else:
            fixed_end = max(fixed_end, begin + size)
    if not growing or records in (0, 0xFFFFFFFF):
        return fixed_end
    record_size = growing[0] if len(growing) == 1 else sum(size + -size % 4 for size in growing)
    last = max(start + size for start, size in zip(starts, growing, strict=True))
    return max(fixed_end, last + (records - 1) * record_size)
