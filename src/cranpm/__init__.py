"""Daily PM2.5 at 1 km for a continent, days ahead.

The public face: what a program needs, with everything else imported when it is used.

    archive = cranpm.open_archive("alps.archive")
    cranpm.forecast(archive, "2021-02-01")
"""

from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray

    from cranpm.archive.store import Archive
    from cranpm.core.days import DayRange
    from cranpm.core.grid import Window
    from cranpm.forecasting.publication import Publication
    from cranpm.network.precision import Precision
    from cranpm.training.recipe import TrainSettings
    from cranpm.training.tile_scores import TileScores
    from cranpm.verification.scores import Scores
    from cranpm.weights import Weights

__all__ = ["__version__", "forecast", "open_archive", "open_publication", "train", "verify"]
__version__ = version("cranpm")


def open_archive(location: "str | Path | Archive", snapshot: str | None = None) -> "Archive":
    """One version of an archive of days, for reading: the newest, or the one that `snapshot` names.

    `location` is a folder or an s3://, gs:// or az:// URL. `archive.days` are the days present, `archive.pm25(day)` is
    PM2.5 in ug m-3 and `archive.coarse(day)` the channels in their units; `archive.to_xarray()` has all of it.
    """
    from cranpm.archive.store import Archive

    return location if isinstance(location, Archive) else Archive(str(location), snapshot)


def forecast(
    archive: "str | Path | Archive",
    day: str | date,
    weights: "str | Path | Weights" = "shipped",
    leads: Sequence[int] | None = None,
    region: "Window | None" = None,
    *,
    degrade: bool = False,
    precision: "Precision | None" = None,
) -> "xarray.Dataset":
    """A checked forecast from `day`: daily mean PM2.5 (`pm2p5`, ug m-3) by valid day, as NetCDF files hold it.

    `weights` is a folder, opened weights, "shipped" or "persistence". `leads` are days ahead, by default those of the
    weights; `region` is a window of the fine grid. With `degrade`, missing inputs are replaced where that is possible,
    and the dataset's attribute `degraded` says which. `precision` is "fp32" or "bf16", by default the faster one here.
    """
    from cranpm.core.days import LEADS, parse_day
    from cranpm.core.grid import EVERYWHERE
    from cranpm.forecasting.engine import predict
    from cranpm.forecasting.publication.dataset import to_dataset
    from cranpm.weights import Weights, find_weights

    start = day if isinstance(day, date) else parse_day(day)
    chosen = weights if isinstance(weights, Weights) else find_weights(str(weights))
    usual = chosen.card.leads if chosen else LEADS
    where = EVERYWHERE if region is None else region
    ahead = usual if leads is None else leads
    made = predict(open_archive(archive), start, chosen, ahead, where, degrade=degrade, precision=precision)
    return to_dataset(made)


def open_publication(folder: str | Path) -> "Publication":
    """The forecasts that `cranpm forecast --out` published in a folder; `.newest().pm25(lead)` is in ug m-3.

    Every file of a run is checked against its checksum when the run is opened.
    """
    from cranpm.forecasting.publication import open_publication as opened

    return opened(Path(folder))


def train(
    settings: "str | Path | TrainSettings", archive: "str | Path | Archive", out: str | Path, resume: bool = False
) -> "TileScores":
    """Train a network, write its weights to `out`/best, and return their scores on the test days (ug m-3).

    `settings` is a TOML file, the name of a shipped recipe such as "alps.toml", or settings. With `resume`, a stopped
    run in `out` is continued.
    """
    from cranpm.training.recipe import TrainSettings, load_settings
    from cranpm.training.training_runs import train as run

    wanted = settings if isinstance(settings, TrainSettings) else load_settings(Path(settings))
    return run(wanted, open_archive(archive), Path(out), resume)


def verify(
    forecasts: "dict[str, str | Path]",
    archive: "str | Path | Archive",
    days: "str | DayRange | Sequence[date]",
    out: str | Path,
    leads: Sequence[int] | None = None,
    jobs: int = 1,
    on_day: Callable[[int, int], None] = lambda done, total: None,
) -> "Scores":
    """Scores of forecasts relative to the truth in an archive (errors in ug m-3), with persistence as the baseline.

    `forecasts` are folders of published forecasts by the name of their method, `days` the start days. A day that one
    method lacks is left out for all (`scores.left_out`). Tables and `scores.json` are written to `out`.
    """
    from cranpm.baselines import simple
    from cranpm.core.cluster import open_pool
    from cranpm.core.days import parse_days
    from cranpm.verification import Plan, Simple, all_tables, common_leads, open_forecasts, score, summarise, write

    opened = open_archive(archive)
    wanted = list(parse_days(days) if isinstance(days, str) else days)
    methods = [open_forecasts(name, Path(place), opened.domain.fine) for name, place in forecasts.items()]
    baseline = Simple("persistence", simple("persistence", opened))
    plan = Plan(opened, [baseline, *methods], tuple(common_leads(methods, wanted) if leads is None else leads))
    with open_pool(jobs) as pool:
        scores = score(plan, wanted, Path(out), pool, on_day)
    summary = summarise(scores, "persistence")
    write(scores, summary, all_tables(scores, summary), Path(out))
    return scores
