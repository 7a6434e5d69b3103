import pytest

from cranpm import bench
from cranpm.errors import CranpmError

BOX = "48,7,42.75,12.25"


def test_simulate_prints_its_figures():
    facts = bench.run("simulate", BOX, 2)
    assert facts["machine copy bandwidth, GB/s"] > 0.1
    assert 0 < facts["seconds a day after it, median"] < facts["seconds in all"]
    assert 0.05 < facts["peak resident memory, GB"] < 20


def test_store_compares_equal_reads():
    facts = bench.run("store", BOX, 4)
    assert facts["speed relative to plain zarr (median of rounds)"] > 0
    ours, plain = facts["samples a second, archive"], facts["samples a second, plain zarr"]
    assert min(ours, plain) > 0


def test_unknown_benches_are_refused():
    with pytest.raises(CranpmError, match="one of simulate, store; found tea"):
        bench.run("tea", BOX, 2)
