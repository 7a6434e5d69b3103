"""TopoFlow (Kheder et al. 2026): tokens in the order of the wind, a first block that finds it hard to look uphill."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, ToCells
from cranpm.network.context import DAYS_READ
from cranpm.network.cranpm_settings import BranchSettings, NetworkSettings
from cranpm.network.encoder import Encoder

ELEVATION_SCALE_M = 1000.0


class TopoFlow(Backbone):
    """CRAN-PM's coarse branch alone, with a head that gives the cells of every lead."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__(settings, channels, shape, leads, outputs)
        branch = BranchSettings(
            shape=shape,
            patch=settings.patch,
            width=settings.width,
            heads=settings.heads,
            depth=settings.depth,
            window=settings.window,
            elevation_scale_m=ELEVATION_SCALE_M,
        )
        self.encoder = Encoder(branch, DAYS_READ * channels, NetworkSettings(dropout=0.0, drop_path=0.0))
        self.out = ToCells(settings.width, settings.patch, len(leads) * outputs)

    def forward(
        self, frames: Float[Tensor, "b t ch h w"], wind: Float[Tensor, "b 2 h w"], elevation_m: Float[Tensor, "b h w"]
    ) -> Float[Tensor, "b leads out h w"]:
        tokens = self.encoder(frames.flatten(1, 2), elevation_m, wind=wind)
        cells = self.out(tokens.permute(0, 3, 1, 2), (frames.shape[3], frames.shape[4]))
        return cells.unflatten(1, (len(self.leads), self.outputs))
