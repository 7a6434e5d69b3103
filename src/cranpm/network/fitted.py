"""Networks that are fitted at once on pixels, instead of being trained step by step; they forecast as the others do."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor

from cranpm.network.interface import DayInputs, ForecastNetwork, GridSettings, Positive, TileInputs


class FittedSettings(GridSettings):
    """Settings of a network that is fitted: beside its grid, how many pixels it is fitted on."""

    samples: PositiveInt = 200_000
    """Pixels to fit on for each lead, at most: so many start days are drawn that `samples_a_day` make this number."""
    samples_a_day: Positive = 200
    """Pixels of one start day, drawn over its land; the same pixels for every lead."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Numbers that it is given of one pixel."""


@dataclass(frozen=True)
class PixelSample:
    """Pixels of one start day for one lead, with what came true."""

    day: DayInputs
    pixels: TileInputs
    """A tile of one row: pixels of anywhere, each with its own latitude and longitude."""
    lead: int
    target: Float[Tensor, " pixels"]
    """PM2.5 (ug m-3) on the target day; NaN where missing."""


class FittedNetwork(ForecastNetwork):
    """A network that finds its numbers from all samples at once."""

    settings: FittedSettings

    @abstractmethod
    def fit(self, samples: Iterable[PixelSample], seed: int) -> None:
        """Take the numbers that suit the samples; `seed` is for whatever is drawn at random."""
