import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from paper_channels import NAMES
from sample_days import FIRST, PRODUCER, SMALL, STATIONS, make_day

from cranpm.archive import repository
from cranpm.archive.day_data import Quality, Statics
from cranpm.archive.layout import create_archive
from cranpm.archive.store import Archive, ArchiveInMemory, describe
from cranpm.archive.writer import ArchiveWriter
from cranpm.core.channels import PAPER_CHANNELS, Channel
from cranpm.core.errors import CranpmError
from cranpm.core.packing import ARCHIVED

COARSE_NAMES = tuple(channel.name for channel in PAPER_CHANNELS)


@pytest.fixture
def empty(tmp_path):
    rng = np.random.default_rng(1)
    land = np.ones(SMALL.fine.shape, bool)
    land[:40] = False
    statics = Statics(rng.uniform(0, 3000, land.shape).astype(np.float32), np.full(land.shape, 3, np.float32), land)
    path = str(tmp_path / "archive")
    create_archive(path, SMALL, statics, STATIONS, PRODUCER)
    return path


def put(path, *days):
    with ArchiveWriter(path) as writer:
        return [writer.put(day) for day in days][-1]


def test_days_in_memory_are_the_same_read_once_and_cannot_be_changed(archive):
    kept, day, window = ArchiveInMemory(archive.location), archive.days[1], (slice(3, 20), slice(5, 9))
    for name in ("coarse", "packed_pm25", "stations_pm25"):
        field = getattr(kept, name)(day)
        assert np.array_equal(field, getattr(archive, name)(day), equal_nan=field.dtype.kind == "f")
        assert np.shares_memory(field, getattr(kept, name)(day))
        with pytest.raises(ValueError, match="read-only"):
            field[0] = 1
    assert np.array_equal(kept.pm25(day, window), archive.pm25(day, window), equal_nan=True)
    with pytest.raises(CranpmError, match="a window inside"):
        kept.pm25(day, (slice(0, 10**6), slice(0, 2)))


def test_round_trip_to_packing_precision(empty):
    day = make_day(FIRST)
    snapshot = put(empty, day)
    archive = Archive(empty)
    assert archive.snapshot == snapshot
    assert archive.days == [FIRST]
    assert np.array_equal(archive.coarse(FIRST), day.coarse)
    assert np.nanmax(np.abs(archive.pm25(FIRST) - day.pm25_ugm3)) <= 0.0501
    assert np.array_equal(np.isnan(archive.pm25(FIRST)), np.isnan(day.pm25_ugm3))
    assert np.array_equal(archive.stations_pm25(FIRST), day.stations_ugm3, equal_nan=True)
    assert archive.provenance(FIRST) == day.provenance
    assert archive.domain == SMALL
    for name in ("ids", "lat", "lon", "altitude_m", "country", "kind", "area"):
        assert np.array_equal(getattr(archive.stations, name), getattr(STATIONS, name)), name


@given(st.lists(st.floats(0, 2000, width=32) | st.just(float("nan")), min_size=1))
def test_packing(values):
    pm25 = np.array(values, np.float32)
    back = ARCHIVED.unpack(ARCHIVED.pack(pm25))
    assert np.array_equal(np.isnan(back), np.isnan(pm25))
    assert np.allclose(back, pm25, atol=0.0502, equal_nan=True)
    assert np.array_equal(ARCHIVED.pack(back), ARCHIVED.pack(pm25))


def test_windows_are_parts_of_the_field(archive):
    window = (slice(100, 356), slice(37, 293))
    day = archive.days[1]
    assert np.array_equal(archive.pm25(day, window), archive.pm25(day)[window], equal_nan=True)
    assert np.array_equal(archive.statics(window).elevation_m, archive.statics().elevation_m[window])
    assert archive.land(window).dtype == bool


def test_coarse_statics_follow_from_the_fine_ones(archive):
    coarse = archive.coarse_statics()
    block = (slice(50, 75), slice(25, 50))
    heights = archive.elevation()[block].astype(float)
    assert coarse["elevation"][2, 1] == pytest.approx(heights.mean(), rel=1e-3)
    assert coarse["elevation_spread"][2, 1] == pytest.approx(heights.std(), rel=1e-2)
    assert coarse["land_fraction"][2, 1] == pytest.approx(archive.land()[block].mean(), abs=1e-3)


def test_gaps_are_listed_and_never_filled(empty):
    put(empty, make_day(date(2021, 12, 30)), make_day(date(2022, 1, 2)), make_day(date(2020, 2, 29)))
    archive = Archive(empty)
    assert archive.days == [date(2020, 2, 29), date(2021, 12, 30), date(2022, 1, 2)]
    assert archive.missing[1] == "2021-12-31..2022-01-01"
    assert archive.quality(date(2021, 12, 31)) is Quality.ABSENT
    with pytest.raises(CranpmError, match=r"2021-12-31 in .*found 3 days in 2020-02-29\.\.2022-01-02"):
        archive.pm25(date(2021, 12, 31))


def test_the_same_day_again_changes_nothing_and_a_corrected_one_replaces_it(empty):
    first = put(empty, make_day(FIRST), make_day(FIRST + timedelta(days=1)))
    assert put(empty, make_day(FIRST)) == first
    corrected = make_day(FIRST, seed=9, quality=Quality.DEGRADED)
    second = put(empty, corrected)
    assert second != first
    now, before = Archive(empty), Archive(empty, first)
    assert np.array_equal(now.coarse(FIRST), corrected.coarse)
    assert now.quality(FIRST) is Quality.DEGRADED
    assert np.array_equal(before.coarse(FIRST), make_day(FIRST).coarse)


def test_a_reader_keeps_its_version_while_days_arrive(empty):
    put(empty, make_day(FIRST))
    reader = Archive(empty)
    put(empty, make_day(FIRST + timedelta(days=1)))
    assert reader.days == [FIRST]
    assert len(Archive(empty).days) == 2
    assert pickle.loads(pickle.dumps(reader)).snapshot == reader.snapshot


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coarse": np.zeros((3, 3))}, "coarse of shape"),
        ({"pm25_ugm3": np.full(SMALL.fine.shape, 6553.5, np.float32)}, r"pm25 in 0\.\.2000"),
        ({"pm25_ugm3": np.full(SMALL.fine.shape, np.nan, np.float32)}, "PM2.5 on some pixels"),
        ({"pm25_ugm3": np.full(SMALL.fine.shape, np.inf, np.float32)}, "finite or NaN"),
        ({"stations_ugm3": np.array([-999.0, 1.0], np.float32)}, "stations in 0"),
        ({"coarse": np.full((35, 21, 21), np.nan, np.float32)}, "all of u10 on a good day; found 100%"),
        ({"quality": Quality.ABSENT}, "good or degraded"),
    ],
)
def test_implausible_days_are_refused_and_nothing_is_written(empty, change, message):
    before = Archive(empty).snapshot
    with pytest.raises(CranpmError, match=message):
        put(empty, make_day(FIRST, **change))
    assert Archive(empty).snapshot == before


def test_archives_that_store_names_alone_are_read(empty):
    """As those made before channels were data."""
    put(empty, make_day(FIRST))
    with repository.commit(empty, "as it was", {}) as root:
        del root["coarse/fields"].attrs["channel_table"]
    archive = Archive(empty)
    assert archive.channels == PAPER_CHANNELS
    assert archive.channel_names == COARSE_NAMES
    put(empty, make_day(FIRST + timedelta(days=1)))


def test_an_archive_knows_channels_that_this_installation_does_not(tmp_path):
    fog = Channel("fog", "visibility", "m", "era5", 0, 1e5, 2e4, 1e4, "visibility, daily mean")
    statics = Statics(*(np.ones(SMALL.fine.shape, np.float32) for _ in range(3)))
    path = str(tmp_path / "archive")
    create_archive(path, SMALL, statics, STATIONS, PRODUCER, (*PAPER_CHANNELS[:2], fog))
    assert Archive(path).channels == (*PAPER_CHANNELS[:2], fog)
    put(path, make_day(FIRST, channels=(*PAPER_CHANNELS[:2], fog)))
    with pytest.raises(CranpmError, match=r"fog in 0\.\.100000 m"):
        put(path, make_day(FIRST, coarse=np.full((3, *SMALL.coarse.shape), -1, np.float32)))


def test_stations_that_are_nowhere_are_refused():
    with pytest.raises(CranpmError, match=r"found b at latitude nan, longitude 9\.0"):
        replace(STATIONS, lat=np.array([45.0, np.nan]))
    with pytest.raises(CranpmError, match=r"found a at latitude 45\.0, longitude 181\.0"):
        replace(STATIONS, lon=np.array([181.0, 9.0]))


def test_celsius_is_refused(empty):
    coarse = make_day(FIRST).coarse.copy()
    coarse[NAMES.index("t2m")] = 15.0
    with pytest.raises(CranpmError, match=r"t2m in 180\.\.330 K; found 15\.\.15"):
        put(empty, make_day(FIRST, coarse=coarse))


def test_days_off_the_axis_are_refused(empty):
    with pytest.raises(CranpmError, match="a day in 2000-01-01"):
        put(empty, make_day(date(1999, 12, 31)))


def test_a_second_writer_is_refused(empty):
    with ArchiveWriter(empty), pytest.raises(CranpmError, match=f"process {os.getpid()} writing"):
        ArchiveWriter(empty)
    put(empty, make_day(FIRST))


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from datetime import timedelta
from sample_days import FIRST, make_day
from cranpm.archive.writer import ArchiveWriter
with ArchiveWriter(sys.argv[2]) as writer:
    for number in range(400):
        writer.put(make_day(FIRST + timedelta(days=number)))
        print(number, flush=True)
"""


def start_writer(path):
    here = str(Path(__file__).parents[1])
    return subprocess.Popen([sys.executable, "-c", WRITER, here, path], stdout=subprocess.PIPE, text=True)


def kill_and_check(path, delay):
    before = len(Archive(path).days)
    with start_writer(path) as process:
        written = [int(process.stdout.readline())]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        written += [int(line) for line in process.stdout.read().split()]
    # Every day that was reported is there; at most one more was committed before it could be reported.
    assert max(before, len(written)) <= check_whole_days(path) <= max(before, len(written) + 1)


def check_whole_days(path):
    archive = Archive(path)
    for day in archive.days:
        assert np.array_equal(archive.coarse(day), make_day(day).coarse)
        assert np.array_equal(archive.packed_pm25(day), ARCHIVED.pack(make_day(day).pm25_ugm3))
        assert archive.provenance(day) == make_day(day).provenance
    return len(archive.days)


def test_killing_the_writer_leaves_whole_days(empty):
    rng = random.Random(4)
    for _ in range(3):
        kill_and_check(empty, rng.uniform(0, 0.3))
    put(empty, make_day(date(2030, 1, 1)))


FULL_DISK = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from datetime import timedelta
from sample_days import FIRST, make_day
from cranpm.core.errors import CranpmError
from cranpm.archive.writer import ArchiveWriter
with ArchiveWriter(sys.argv[2]) as writer:
    writer.put(make_day(FIRST))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        writer.put(make_day(FIRST + timedelta(days=1)))
    except CranpmError as error:
        print(error)
"""


def test_a_disk_that_takes_no_more_is_a_refusal_and_keeps_what_is_there(empty):
    """Files beyond a limit fail as they would on a full disk."""
    arguments = [sys.executable, "-c", FULL_DISK, str(Path(__file__).parents[1]), empty]
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert "can be read and written" in result.stdout, result.stderr
    assert "free space" in result.stdout
    assert check_whole_days(empty) == 1
    put(empty, make_day(FIRST + timedelta(days=1)))
    assert check_whole_days(empty) == 2


KILL_AT_RENAME = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int calls;
int rename(const char *from, const char *to) {
    const char *limit = getenv("KILL_AT_RENAME");
    if (limit && atomic_fetch_add(&calls, 1) + 1 == atoi(limit)) raise(SIGKILL);
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler to build the shim that kills at a rename")
def test_killing_between_any_two_files_leaves_whole_days(empty, tmp_path):
    """Every file of a commit becomes visible by a rename: die before the first, the second, ... until none is left."""
    shim = tmp_path / "shim.so"
    (tmp_path / "shim.c").write_text(KILL_AT_RENAME)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True)
    script = WRITER.replace("range(400)", "range(1)")
    for number in range(1, 40):
        environment = os.environ | {"LD_PRELOAD": str(shim), "KILL_AT_RENAME": str(number)}
        arguments = [sys.executable, "-c", script, str(Path(__file__).parents[1]), empty]
        code = subprocess.run(arguments, env=environment, stdout=subprocess.DEVNULL).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        check_whole_days(empty)
    assert number > 8
    assert Archive(empty).days == [FIRST]


@pytest.mark.long
def test_killing_the_writer_at_many_moments(empty):
    rng = random.Random(5)
    for _ in range(30):
        kill_and_check(empty, rng.uniform(0, 0.25))


def test_killing_the_creation_is_mended_by_creating_again(tmp_path):
    import icechunk

    path = str(tmp_path / "archive")
    icechunk.Repository.create(icechunk.local_filesystem_storage(path))
    assert not repository.exists(path)
    with pytest.raises(CranpmError, match="creation was interrupted"):
        Archive(path)
    statics = Statics(*(np.ones(SMALL.fine.shape, np.float32) for _ in range(3)))
    create_archive(path, SMALL, statics, STATIONS, PRODUCER)
    assert Archive(path).days == []


def read_everything(path):
    archive = Archive(path)
    day = archive.days[-1]
    return [
        archive.coarse(day),
        archive.packed_pm25(day),
        archive.stations_pm25(day),
        archive.statics().elevation_m,
        archive.statics().land,
        *archive.coarse_statics().values(),
        archive.stations.lat,
        np.array([str(archive.provenance(day)), str(archive.days), str(dict(archive.attributes))]),
    ]


def flip_and_check(path, truth, files, rng, per_file):
    noticed = 0
    for file in files:
        sound = file.read_bytes()
        for _ in range(per_file):
            broken = bytearray(sound)
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            file.write_bytes(bytes(broken))
            try:
                found = read_everything(path)
            except CranpmError:
                noticed += 1
            else:
                # What is not noticed must not matter: an old version, or a byte that nothing reads.
                pairs = zip(found, truth, strict=True)
                assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs), file
        file.write_bytes(sound)
    return noticed


@pytest.mark.parametrize("part", ["chunks", "manifests", "snapshots", "seals"])
def test_a_flipped_bit_is_noticed(empty, tmp_path, part):
    put(empty, make_day(FIRST), make_day(FIRST + timedelta(days=1)))
    truth = read_everything(empty)
    files = sorted((tmp_path / "archive" / part).iterdir(), key=lambda file: file.stat().st_mtime)[-12:]
    assert flip_and_check(empty, truth, files, random.Random(6), 2) > 0


def test_damage_between_commits_is_not_blessed_by_the_next_one(empty, tmp_path):
    put(empty, make_day(FIRST))
    for file in (tmp_path / "archive/manifests").iterdir():
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))
    with pytest.raises(CranpmError, match="fails its checksum"):
        put(empty, make_day(FIRST + timedelta(days=1)))


def test_a_version_without_checksums_gets_them_from_the_next_writer(empty, tmp_path):
    first = put(empty, make_day(FIRST))
    (tmp_path / "archive/seals" / first).unlink()
    assert describe(Archive(empty))["checksums"] is False
    second = put(empty, make_day(FIRST + timedelta(days=1)))
    assert describe(Archive(empty))["checksums"] is True
    assert describe(Archive(empty, first))["checksums"] is True
    (tmp_path / "archive/seals" / second).write_text("{")
    with pytest.raises(CranpmError, match="checksums that cannot be read"):
        Archive(empty)


@pytest.mark.long
def test_many_flipped_bits_are_noticed(empty, tmp_path):
    put(empty, make_day(FIRST), make_day(FIRST + timedelta(days=1)))
    truth = read_everything(empty)
    files = [file for file in (tmp_path / "archive").rglob("*") if file.is_file()]
    assert flip_and_check(empty, truth, files, random.Random(7), 40) > 300


def test_a_checksum_failure_says_what_to_do(empty, tmp_path):
    put(empty, make_day(FIRST))
    largest = max((tmp_path / "archive/chunks").iterdir(), key=lambda file: file.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 4
    largest.write_bytes(bytes(data))
    with pytest.raises(CranpmError, match=r"intact in .*checksum.*Restore the folder"):
        read_everything(empty)


def test_truncated_chunks_are_refused(empty, tmp_path):
    put(empty, make_day(FIRST))
    for file in (tmp_path / "archive/chunks").iterdir():
        file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(CranpmError, match="intact in"):
        Archive(empty).coarse(FIRST)


def test_other_schemas_and_other_folders_are_refused(empty, tmp_path):
    with repository.commit(empty, "from the future", {}) as root:
        root.attrs["schema"] = 99
    with pytest.raises(CranpmError, match=r"schema 1 or 2 at .*found schema 99"):
        Archive(empty)
    with pytest.raises(CranpmError, match="an archive at"):
        Archive(str(tmp_path / "nothing"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/todo.txt").write_text("milk")
    statics = Statics(*(np.ones(SMALL.fine.shape, np.float32) for _ in range(3)))
    with pytest.raises(CranpmError, match="other files there"):
        create_archive(str(tmp_path / "notes"), SMALL, statics, STATIONS, PRODUCER)
    with pytest.raises(CranpmError, match="no archive yet"):
        create_archive(empty, SMALL, statics, STATIONS, PRODUCER)
    with pytest.raises(CranpmError, match="s3://"):
        Archive("ftp://example.org/archive")


def test_an_unknown_snapshot_is_refused(empty):
    with pytest.raises(CranpmError, match="in version NOSUCHSNAPSHOT"):
        Archive(empty, "NOSUCHSNAPSHOT")


def test_places_where_no_archive_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path / "file"), str(tmp_path / "file" / "sub"), "", "  "):
        with pytest.raises(CranpmError, match="a folder for the archive"):
            repository.exists(place)
        with pytest.raises(CranpmError, match="a folder for the archive"):
            Archive(place)


def test_degraded_days_may_lack_a_channel(empty):
    coarse = make_day(FIRST).coarse.copy()
    coarse[3] = np.nan
    put(empty, make_day(FIRST, coarse=coarse, quality=Quality.DEGRADED))
    assert np.isnan(Archive(empty).coarse(FIRST)[3]).all()
    assert describe(Archive(empty))["quality"] == {"good": 0, "degraded": 1}


def test_idempotence_does_not_depend_on_types(empty):
    day = make_day(FIRST)
    first = put(empty, day)
    retyped = make_day(FIRST, coarse=day.coarse.astype(float), provenance=dict(reversed(day.provenance.items())))
    assert put(empty, retyped) == first
    dated = make_day(FIRST, provenance={"files": ("a", "b"), "on": FIRST})
    assert put(empty, dated) == put(empty, dated)


def test_a_closed_writer_writes_no_more(empty):
    with ArchiveWriter(empty) as writer:
        pass
    with pytest.raises(CranpmError, match="an open writer"):
        writer.put(make_day(FIRST))


@pytest.mark.parametrize(
    "window", [(slice(400, 912), slice(0, 512)), (slice(900, 950), slice(0, 9)), (slice(5, 5), slice(0, 9))]
)
def test_windows_never_come_out_smaller(archive, window):
    with pytest.raises(CranpmError, match="a window inside 512 rows"):
        archive.pm25(archive.days[0], window)
    with pytest.raises(CranpmError, match="a window inside 512 rows"):
        archive.land(window)


def test_a_damaged_snapshot_is_refused_by_every_door(empty, tmp_path):
    snapshot = put(empty, make_day(FIRST))
    file = tmp_path / "archive/snapshots" / snapshot
    file.write_bytes(b"rubbish" + file.read_bytes()[7:])
    for door in (Archive, ArchiveWriter):
        with pytest.raises(CranpmError):
            door(empty)


def worker(archive, day, queue):
    try:
        queue.put(float(np.nansum(archive.pm25(day))))
    except CranpmError as error:
        queue.put(str(error))


def in_child(method, archive, day):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=worker, args=(archive, day, queue))
    process.start()
    answer = queue.get(timeout=60)
    process.join()
    return answer


def test_workers_read_what_the_parent_reads(archive):
    day = archive.days[0]
    assert in_child("spawn", archive, day) == float(np.nansum(archive.pm25(day)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_is_refused_instead_of_hanging(archive):
    assert "spawn" in in_child("fork", archive, archive.days[0])


def test_xarray_opens_it(archive):
    group, _ = repository.read(archive.location)
    day = archive.days[0]
    with xarray.open_zarr(group.store, group="fine", consolidated=False) as fine:
        index = (day - date(2000, 1, 1)).days
        assert np.allclose(fine["pm25"].isel(day=index), archive.pm25(day), equal_nan=True)
        assert fine["lat"].values[0] == SMALL.fine.lat[0]


def test_describe(archive):
    facts = describe(archive)
    assert facts["days"] == 5
    assert facts["first_day"] == "2020-02-27"
    assert facts["missing"] == []
    assert facts["quality"] == {"good": 5, "degraded": 0}
    assert facts["size_mb"] > 0.5
    assert facts["producer"]["source"] == "simulation"


def test_describing_an_empty_archive(empty):
    assert describe(Archive(empty))["first_day"] is None


def test_copies_are_archives_too(empty, tmp_path):
    put(empty, make_day(FIRST))
    shutil.copytree(empty, tmp_path / "copy")
    assert Archive(str(tmp_path / "copy")).days == [FIRST]
