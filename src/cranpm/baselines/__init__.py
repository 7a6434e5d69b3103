"""Baselines: forecasts that a network must beat.

The simple ones need an archive alone, two of them fitted on training days; the learned ones are networks at 25 km, and
gradient boosting pixel by pixel.
"""

from cranpm.archive.store import Archive
from cranpm.baselines.simple.cams import Cams
from cranpm.baselines.simple.climatology import Climatology
from cranpm.baselines.simple.damped import Damped, DampedPersistence, fit_damped
from cranpm.baselines.simple.persistence import Persistence
from cranpm.baselines.simple.simple_baseline import SimpleBaseline
from cranpm.core.errors import CranpmError

SIMPLE = ("persistence", "damped", "climatology", "cams")
FITTED = ("damped", "climatology")

__all__ = ["FITTED", "SIMPLE", "DampedPersistence", "Persistence", "SimpleBaseline", "fit_damped", "simple"]


def simple(name: str, archive: Archive, fitted: DampedPersistence | None = None) -> SimpleBaseline:
    """A simple baseline by name; `fitted` is needed by those of `FITTED`."""
    if name == "persistence":
        return Persistence(archive)
    if name == "cams":
        return Cams(archive)
    if name in FITTED and fitted is not None:
        return Damped(archive, fitted) if name == "damped" else Climatology(archive, fitted)
    raise CranpmError(
        expected=f"a baseline: {', '.join(SIMPLE)}; {' and '.join(FITTED)} with days to fit them on",
        found=name,
        remedy="For example --baselines persistence, or add --fit-days 2019-01-01..2024-12-31.",
    )
