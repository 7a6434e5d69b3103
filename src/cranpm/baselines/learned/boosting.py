"""Gradient boosting pixel by pixel: what an agency's model output statistics (MOS) do.

Trees forecast the change of PM2.5 from what is known at a pixel: PM2.5 of today and yesterday there and as means at
25 km, elevation, latitude, longitude, the coarse channels of today, some of yesterday, and the days ahead. Each lead
has its own trees: none of them is spent on telling leads apart, and what helps at T+1 does not blur T+3.

The trees are fitted by scikit-learn (Ke et al. 2017, LightGBM; HistGradientBoostingRegressor) and kept as tensors, so
that weights are stored, checked and read like those of any network, without a pickle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn

from cranpm.baselines.learned.pixel_features import pixel_features
from cranpm.baselines.learned.trees import Trees, copy_trees
from cranpm.core.channels import Channel
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.network.context import DAYS_READ, check_day, check_lead, check_tiles, lead_index
from cranpm.network.fitted import FittedNetwork, FittedSettings, PixelSample
from cranpm.network.interface import DayInputs, ForecastSettings, TileInputs
from cranpm.network.registry import register
from cranpm.network.scaling import Scales

OF_YESTERDAY = frozenset({"wind_u", "wind_v", "temperature", "precipitation", "boundary_layer_height"})
"""Quantities at the surface that are read of yesterday, too."""
PAPERS = (0, 1, 2, 4)
"""Where they stand among the paper's channels."""
OF_THE_PIXEL = 5
"""The fields of a tile: PM2.5 today, elevation, latitude, longitude, PM2.5 yesterday."""
PIXELS = 65_536
"""Pixels whose features are in memory at a time."""
TENSORS = ("feature", "threshold", "left", "right", "missing", "value")


class BoostingSettings(FittedSettings):
    """Gradient boosting: how many trees of which size, and what they are fitted on."""

    reads_ahead: ClassVar[bool] = True

    kind: Literal["boosting"] = "boosting"
    trees: Annotated[int, Field(gt=0, le=5000)] = 200
    """For each lead."""
    leaves: Annotated[int, Field(gt=1, le=4096)] = 31
    """Of a tree, at most."""
    depth: Annotated[int, Field(gt=0, le=64)] = 8
    """Decisions on the way to a leaf, at most."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.08
    """Which part of the error that is left a tree corrects."""
    least_samples: Annotated[int, Field(gt=0)] = 100
    """Of a leaf; neighbouring pixels of a day resemble each other, so few samples would be one day's weather."""
    yesterday: tuple[NonNegativeInt, ...] | None = None
    """Places of yesterday's channels that are read. Unless given: wind, temperature, rain and boundary layer at the
    surface, wherever the archive has them."""

    @property
    def coarse_pm25(self) -> bool:
        return True

    @property
    def any_grid(self) -> bool:
        return True

    @property
    def looks_around(self) -> bool:
        return False

    @property
    def nodes(self) -> int:
        """Of a tree, at most: inner nodes and leaves."""
        return 2 * self.leaves - 1

    @property
    def features(self) -> int:
        """Numbers that are known of a pixel."""
        form = self.days_ahead
        coarse = DAYS_READ + self.channels + len(self.read_of_yesterday) + form.slots * form.channels
        return OF_THE_PIXEL + coarse

    @property
    def read_of_yesterday(self) -> tuple[int, ...]:
        """Places of the channels of yesterday that are read."""
        return PAPERS if self.yesterday is None else self.yesterday

    def for_channels(self, channels: Sequence[Channel]) -> ForecastSettings:
        if self.yesterday is not None:
            return super().for_channels(channels)
        wanted = [i for i, one in enumerate(channels) if one.level_hpa is None and one.quantity in OF_YESTERDAY]
        return super().for_channels(channels).model_copy(update={"yesterday": tuple(wanted)})


@dataclass(frozen=True)
class PixelContext:
    """The coarse fields that pixels read."""

    fields: Float[Tensor, "days ch h w"]
    """In physical units, NaN where unknown."""
    corner: Float[Tensor, "days 2"]
    lead: Int[Tensor, " days"] | None = None
    """Days ahead that they are for; None where they serve every lead."""

    @property
    def days(self) -> int:
        return self.corner.shape[0]

    def features(self, day: int, pixels: Array) -> Array:
        """(pixels, features) of pixels (5, pixels) of one of the days."""
        north, west = self.corner[day].tolist()
        return pixel_features(self.fields[day].float().cpu().numpy(), (north, west), pixels)


@register("boosting", BoostingSettings)
class Boosting(FittedNetwork):
    """Sums of trees, one sum for each lead; 0, and so persistence, before they are fitted."""

    settings: BoostingSettings
    feature: Tensor
    left: Tensor
    right: Tensor
    missing: Tensor

    def __init__(self, settings: BoostingSettings, scales: Scales):
        super().__init__(settings, scales)
        if max(settings.read_of_yesterday, default=0) >= settings.channels:
            raise CranpmError(
                expected=f"yesterday's channels among 0..{settings.channels - 1} (baseline.yesterday)",
                found=str(max(settings.read_of_yesterday)),
                remedy="Leave it out: it is taken from the archive.",
            )
        shape = (len(settings.leads), settings.trees, settings.nodes)
        for name in TENSORS:
            if name in ("threshold", "value"):  # what is fitted is counted; where it stands is not
                setattr(self, name, nn.Parameter(torch.zeros(shape), requires_grad=False))
            else:
                self.register_buffer(name, torch.zeros(shape))
        self.start = nn.Parameter(torch.zeros(len(settings.leads)), requires_grad=False)

    def encode_day(self, day: DayInputs) -> PixelContext:
        """All coarse fields in one stack; those of the days ahead are NaN where their group is unknown."""
        check_day(day, self.settings)
        form, channels = self.settings.days_ahead, self.settings.channels
        today, before, pm25 = day.coarse.tensor_split([channels, DAYS_READ * channels], dim=1)
        parts = [pm25, today, before[:, list(self.settings.read_of_yesterday)]]
        if form.groups:
            form.check(day.ahead, day.known)
            assert day.ahead is not None
            assert day.known is not None
            sizes = torch.tensor(form.sizes, device=day.known.device)
            there = day.known.repeat_interleave(sizes, dim=2)[..., None, None] > 0
            parts.append(torch.where(there, day.ahead, torch.nan).flatten(1, 2))
        return PixelContext(torch.cat(parts, dim=1), day.corner, day.lead)

    def forecast_tile(
        self, context: PixelContext, tile: TileInputs, lead: Int[Tensor, " tiles"]
    ) -> Float[Tensor, "tiles h w"]:
        """Today's PM2.5 plus the change that the trees of the lead give; NaN where today's is missing."""
        fine = tile.fine
        check_tiles(context.days, fine.shape[0])
        check_lead(context.lead, lead)
        which = lead_index(lead, self.settings.leads)
        if fine.is_meta:
            return fine[:, 0]
        each = fine.shape[0] // context.days
        changes = [
            self._change(context, number // each, of_tile, int(which[number])) for number, of_tile in enumerate(fine)
        ]
        return fine[:, 0] + torch.stack(changes).to(fine.device)

    def _change(
        self, context: PixelContext, day: int, fine: Float[Tensor, "5 h w"], which: int
    ) -> Float[Tensor, "h w"]:
        """Change of PM2.5 (ug m-3) of a tile; 0 where today's is missing."""
        pixels = fine.flatten(1).float().cpu().numpy()
        trees, depth = self.trees(which), self.settings.depth
        there = np.flatnonzero(np.isfinite(pixels[0]))
        change = np.zeros(pixels.shape[1], np.float32)
        for first in range(0, len(there), PIXELS):
            own = there[first : first + PIXELS]
            change[own] = trees.sums(context.features(day, pixels[:, own]), depth) + float(self.start[which])
        return torch.from_numpy(change).view(fine.shape[1:])

    def trees(self, which: int) -> Trees:
        """The trees of a lead, by its place among the leads."""
        parts = {name: getattr(self, name)[which].detach().cpu().numpy() for name in TENSORS}
        numbers = {name: parts.pop(name).astype(np.float32) for name in ("threshold", "value")}
        return Trees(**{name: part.astype(np.int32) for name, part in parts.items()}, **numbers)

    def fit(self, samples: Iterable[PixelSample], seed: int) -> None:
        rows: dict[int, list[Array]] = {lead: [] for lead in self.settings.leads}
        changes: dict[int, list[Array]] = {lead: [] for lead in self.settings.leads}
        for sample in samples:
            pixels = sample.pixels.fine[0].flatten(1).numpy()
            change = sample.target.numpy() - pixels[0]
            there = np.isfinite(change)
            rows[sample.lead].append(self.encode_day(sample.day).features(0, pixels[:, there]))
            changes[sample.lead].append(change[there])
        for which, lead in enumerate(self.settings.leads):
            self._fit_lead(which, np.concatenate(rows.pop(lead)), np.concatenate(changes.pop(lead)), seed)

    def _fit_lead(self, which: int, rows: Array, change: Array, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second: only where it is needed

        settings = self.settings
        rows[:, np.isnan(rows).all(axis=0)] = 0  # scikit-learn has no bins for what is never known; it splits nothing
        fitted = HistGradientBoostingRegressor(
            max_iter=settings.trees,
            max_leaf_nodes=settings.leaves,
            max_depth=settings.depth,
            learning_rate=settings.learning_rate,
            min_samples_leaf=settings.least_samples,
            early_stopping=False,
            random_state=seed,
        ).fit(rows, change)
        trees = copy_trees(fitted, settings.trees, settings.nodes)
        for name in TENSORS:
            getattr(self, name)[which] = torch.from_numpy(getattr(trees, name)).float()
        self.start[which] = float(fitted._baseline_prediction.item())
