"""How fast a day is verified, against the four plainest statistics by numpy."""

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from benchmarks.archive import passing_archive
from cranpm.archive.store import Archive
from cranpm.core.days import LEADS, DayRange
from cranpm.core.machine import forget_peak_memory, peak_memory, timed
from cranpm.forecasting.engine import predict
from cranpm.forecasting.publication import publish
from cranpm.verification.day import Geometry, measure
from cranpm.verification.methods import Product

DAY = date(2022, 1, 25)


def bench_verify(domain: str = "europe") -> dict[str, Any]:
    """Seconds for one start day, all leads, one method; untimed first runs compile what must be compiled."""
    with (
        passing_archive(domain, DayRange(DAY, DAY + timedelta(days=max(LEADS)))) as archive,
        tempfile.TemporaryDirectory() as folder,
    ):
        publish(predict(archive, DAY, None), archive, Path(folder), ("nc",))
        method = Product("persistence", Path(folder), archive.domain.fine)
        whole, part = (Geometry(archive, names) for names in (("errors", "spectra", "ssim"), ("errors", "spectra")))
        measure(whole, [method], DAY, LEADS[:1])
        forget_peak_memory()
        quick = timed(lambda: measure(part, [method], DAY, LEADS))
        slow = timed(lambda: measure(whole, [method], DAY, LEADS))
        memory = peak_memory()
        plain = timed(lambda: _plain(archive, Path(folder) / str(DAY) / f"pm25_{DAY}.nc"))
    return {
        "domain": domain,
        "pixels": archive.domain.fine.rows * archive.domain.fine.cols,
        "all but SSIM, s (goal 5)": quick,
        "with SSIM, s (goal 20)": slow,
        "peak resident memory, GB (goal 3)": memory,
        "RMSE, MAE, bias and correlation alone by plain numpy, s": plain,
        "all but SSIM / plain": quick / plain,
    }


def _plain(archive: Archive, path: Path) -> list[float]:
    """Whole fields at once, as one would write it first."""
    found = []
    with xarray.open_dataset(path, decode_timedelta=False) as dataset:
        for index, lead in enumerate(LEADS):
            forecast, truth = dataset.pm2p5[index].values, archive.pm25(DAY + timedelta(days=lead))
            error = forecast - truth
            here = np.isfinite(error)
            found += [float(np.sqrt(np.nanmean(error**2))), float(np.nanmean(np.abs(error))), float(np.nanmean(error))]
            found.append(float(np.corrcoef(forecast[here], truth[here])[0, 1]))
    return found
