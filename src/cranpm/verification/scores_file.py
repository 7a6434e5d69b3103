"""`scores.json`, typed: what `cranpm verify` writes and figures and reports read. None: the number is not known."""

from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cranpm.core.errors import CranpmError
from cranpm.core.files import write_whole

FILE = "scores.json"
FORMAT: Literal[2] = 2
"""To be raised when what the file holds changes."""
Number = float | None


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Days(_Frozen):
    """The start days that count."""

    count: int
    first: date
    last: date


class Source(_Frozen):
    """The archive that holds the truth."""

    snapshot: str
    source: str


class Bins(_Frozen):
    """By bin of the true concentration."""

    rmse: tuple[Number, ...]
    bias: tuple[Number, ...]
    share: tuple[Number, ...]


class Event(_Frozen):
    """How well exceedances of a threshold were forecast."""

    pod: Number
    far: Number
    csi: Number
    ets: Number


class ErrorScores(_Frozen):
    """Scores of forecasts against truth (ug m-3)."""

    rmse: Number
    mae: Number
    bias: Number
    correlation: Number
    r2: Number
    mean_truth: Number
    bins: Bins
    exceedance: dict[str, Event]
    """By threshold."""
    index_same: Number
    """Share of daily means in the right category of the air quality index."""
    index_within_one: Number


class FieldScores(ErrorScores):
    """Of the pixels of one place; what stands below is known of the whole domain alone."""

    ssim: Number = None
    joint: tuple[tuple[float, ...], ...] | None = None
    """Share of the weight by (bin of the forecast, bin of the truth)."""
    bin_truth: tuple[Number, ...] | None = None
    """Mean truth in each bin of it (ug m-3)."""


class StationScores(ErrorScores):
    """Of the pairs at a group of stations."""

    pair_ssim: Number


class ForecastBins(_Frozen):
    """Pairs at stations by the bin of the forecast: number, mean forecast and mean observation (ug m-3)."""

    pairs: tuple[float, ...]
    forecast: tuple[Number, ...]
    truth: tuple[Number, ...]


class FairmodeScores(_Frozen):
    """FAIRMODE's indicators, 90th percentile over stations."""

    stations: int
    mqi_90: Number
    mqi_year_90: Number
    mqi_forecast_90: Number
    target: dict[str, tuple[Number, Number]]
    """By station: error without bias and bias, both over twice the measurement's uncertainty."""


class LeadScores(_Frozen):
    """Of one method and lead."""

    fields: dict[str, dict[str, FieldScores]]
    """By scale and place."""
    power_ratio: tuple[Number, ...]
    """By band of wavelengths: power of the forecast over that of the truth."""
    pairs_by_forecast: ForecastBins
    stations: dict[str, StationScores]
    """By group."""
    fairmode: FairmodeScores


class MethodScores(BaseModel):
    """What is known of a method, and its scores by lead (T+1, T+2 ...). A method may state more facts."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str
    resolution: str | None = None
    parameters: int | None = None
    weights_sha256: str | None = None
    stations_in_loss: Any = None
    uncovered_pixels: int
    leads: dict[str, LeadScores]

    @property
    def facts(self) -> dict[str, Any]:
        """All that is known of it but the scores."""
        return self.model_dump(exclude={"leads"}, exclude_none=True)


class Change(_Frozen):
    """RMSE of a method relative to another's (%), with the 95 % interval."""

    method: str
    against: str
    lead: int
    at: str
    value: Number
    interval: tuple[Number, Number]


class MetricScore(_Frozen):
    """A metric of a statistic over the whole domain or at stations, with 95 % intervals."""

    statistic: str
    metric: str
    title: str
    method: str
    lead: int
    at: str
    """A scale, or stations."""
    value: Number
    interval: tuple[Number, Number]
    difference: Number
    """To the reference, in the unit of the metric."""
    difference_interval: tuple[Number, Number]


class ScoresFile(_Frozen):
    """Everything that a verification found."""

    format: Literal[2]
    days: Days
    left_out: dict[date, str]
    archive: Source
    reference: str
    """The method that differences of metrics are to."""
    stations: dict[str, int]
    """Number by group."""
    wavelengths_px: tuple[int, ...]
    """Shortest of each band."""
    bins_ugm3: tuple[float, ...]
    """Borders of the bins of concentration."""
    rmse_change_percent: tuple[Change, ...]
    metrics: tuple[MetricScore, ...]
    methods: dict[str, MethodScores]

    @property
    def leads(self) -> list[int]:
        """Days ahead."""
        return [int(name.removeprefix("T+")) for name in next(iter(self.methods.values())).leads]

    def of(self, method: str, lead: int) -> LeadScores:
        """The scores of a method at a lead."""
        return self.methods[method].leads[f"T+{lead}"]

    def write(self, folder: Path) -> None:
        """Write `scores.json` into a folder."""
        write_whole(folder / FILE, self.model_dump_json(indent=1) + "\n")


def read_scores(folder: Path) -> ScoresFile:
    """The scores in a folder that `cranpm verify` wrote; those of another version are refused."""
    path = folder / FILE
    try:
        return ScoresFile.model_validate_json(path.read_text())
    except FileNotFoundError:
        found = "no such file"
    except ValidationError as error:
        known = '"methods"' in path.read_text()
        found = "scores of another version" if known else str(error.errors()[0]["msg"])
    except (OSError, ValueError) as error:
        found = str(error)
    raise CranpmError(
        expected=f"scores of this version at {path}",
        found=found,
        remedy=f"Verify again: `cranpm verify --out {folder}`; days whose sums are still valid are kept.",
    )
