"""How fast providers' files become a day, and how far their decoding is from a bare reading of the same bytes."""

import resource
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import netCDF4

from benchmarks.archive import passing_archive
from cranpm.core.cluster import open_pool
from cranpm.core.days import DayRange
from cranpm.core.machine import timed
from cranpm.providers import PROVIDERS
from cranpm.providers.export import write_provider_files
from cranpm.providers.ingest import ingest
from cranpm.providers.provider import ReadQuery
from cranpm.providers.readers.files import Piece, pieces

DAY = date(2021, 1, 2)


def bench_ingest(domain: str = "europe") -> dict[str, Any]:
    """One day from files to its commit; and ERA5 alone, in this process, beside netCDF4 reading the same variables."""
    with passing_archive(domain, DayRange(DAY, DAY)) as archive, tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "native"
        write_provider_files(archive, [DAY], files, forecasts=False)
        size = sum(path.stat().st_size for path in files.iterdir()) / 1e9
        place = str(Path(folder) / "ingested")
        later = DAY + timedelta(days=1)
        ingest([files], place, archive.domain, DayRange(later, later))  # lays the archive out, makes no day
        with open_pool(2) as pool:
            whole = timed(lambda: ingest([files], place, pool=pool))
        era5 = [piece for path in sorted(files.glob("era5*")) for piece in pieces(path)]
        bare = min(timed(lambda: _bare(era5)) for _ in range(3))
        channels = [name for name in archive.channel_names if name in PROVIDERS["era5"].provides]
        query = ReadQuery([DAY], archive.domain, channels)
        ours = min(timed(lambda: PROVIDERS["era5"].open(era5, query)(DAY)) for _ in range(3))
        shape = f"{archive.domain.coarse.rows} x {archive.domain.coarse.cols}"
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9
    return {
        "domain": f"{domain}, {shape} cells, 24 hours of 30 fields",
        "files of a day, GB": size,
        "a day from files to its commit, s (goal 20)": whole,
        "ERA5 decoded, averaged and regridded, s": ours,
        "the same variables by netCDF4 alone, s": bare,
        "ours / bare (goal 1.5)": ours / bare,
        "largest process that read files, GB (goal 4)": children,
    }


def _bare(files: list[Piece]) -> None:
    for piece in files:
        with piece.local() as path, netCDF4.Dataset(path) as file:
            for name in file.variables:
                file[name][...]
