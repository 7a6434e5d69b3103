import numpy as np
import pytest

from cranpm import bench
from cranpm.errors import CranpmError

BOX = "48,7,42.75,12.25"


def test_simulate_prints_its_figures():
    facts = bench.run("simulate", BOX, 3)
    assert facts["machine copy bandwidth, GB/s"] > 0.1
    assert 0 < facts["seconds a day after it, median"] < facts["seconds in all"]
    assert 0.05 < facts["peak resident memory, GB"] < 20


def test_store_compares_equal_reads():
    facts = bench.run("store", BOX, 4)
    assert set(facts) >= {"samples a second, archive", "samples a second, plain zarr"}
    assert facts["speed relative to plain zarr (median of rounds)"] > 0
    ours, plain = facts["samples a second, archive"], facts["samples a second, plain zarr"]
    assert min(ours, plain) > 0


def test_both_readers_read_the_same(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "FIRST", archive.days[0])
    group = bench._copy_to_zarr(archive, str(tmp_path / "plain.zarr"))
    for sample in bench._random_samples(archive)[:3]:
        pairs = zip(bench._from_archive(archive, *sample), bench._from_zarr(group, *sample), strict=True)
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def test_unknown_benches_are_refused():
    with pytest.raises(CranpmError, match="one of simulate, store; found tea"):
        bench.run("tea", BOX, 2)
