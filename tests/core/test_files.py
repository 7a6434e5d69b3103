"""What is written appears whole, and what was changed since is refused."""

import os
from contextlib import suppress

import pytest

from cranpm.core.errors import CranpmError
from cranpm.core.files import SUMS, check_sums, point_to, read_folder, whole_file, write_folder, write_sums, write_whole


def test_a_file_keeps_its_content_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with suppress(RuntimeError), whole_file(path) as beside:
        beside.write_text("ne")
        assert beside.suffix == ".txt"
        raise RuntimeError
    assert path.read_text() == "old"
    write_whole(path, b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_moves_in_one_step(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_to(tmp_path / "now", name)
        assert os.readlink(tmp_path / "now") == name
    assert sorted(os.listdir(tmp_path)) == ["now", "one", "two"]


def test_every_flipped_bit_is_refused(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "inner" / "b").write_bytes(b"d")
    write_sums(tmp_path)
    check_sums(tmp_path)
    for name in ("a", "inner/b"):
        good = (tmp_path / name).read_bytes()
        for bit in range(8 * len(good)):
            bad = bytearray(good)
            bad[bit // 8] ^= 1 << bit % 8
            (tmp_path / name).write_bytes(bad)
            with pytest.raises(CranpmError, match=f"expected {name} with the checksum that {SUMS} states"):
                check_sums(tmp_path)
        (tmp_path / name).write_bytes(good)
    (tmp_path / "a").unlink()
    with pytest.raises(CranpmError, match="found none"):
        check_sums(tmp_path)


def test_a_folder_is_new_whole_and_checked(tmp_path):
    write_folder(tmp_path / "new", {"x": b"1", "y": b"2"})
    files, name = read_folder(tmp_path / "new", ["x"])
    assert files == {"x": b"1"}
    assert len(name) == 64
    with pytest.raises(CranpmError, match="no folder"):
        write_folder(tmp_path / "new", {})
    (tmp_path / "new" / "x").write_bytes(b"3")
    with pytest.raises(CranpmError, match="was changed or damaged"):
        read_folder(tmp_path / "new", ["x"])
    assert os.listdir(tmp_path) == ["new"]
