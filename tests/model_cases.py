"""Small networks and plausible inputs in physical units."""

from dataclasses import dataclass

import torch
from paper_channels import INDEX
from torch import Tensor, nn

from cranpm.core.grid import DOMAINS, Domain
from cranpm.network import CranPM, DayInputs, NetworkSettings, TileInputs, build, preset
from cranpm.network.interface import flat
from cranpm.network.scaling import typical_scales

torch.set_num_threads(1)  # small tensors gain nothing from more, and lose much where cores are shared

TINY = preset("tiny")
assert isinstance(TINY, NetworkSettings)


@dataclass(frozen=True)
class Batch:
    coarse: Tensor
    wind: Tensor
    elevation: Tensor
    corner: Tensor
    fine: Tensor
    position: Tensor
    lead: Tensor

    @property
    def day(self) -> DayInputs:
        return DayInputs(self.coarse, self.wind, self.elevation, self.corner)

    @property
    def tiles(self) -> TileInputs:
        return TileInputs(self.fine, self.position)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Arguments of a network's `forward`."""
        return flat(self.day, self.tiles, self.lead)


def batch(domain: Domain = DOMAINS["alps"], days: int = 1, tiles: int = 2, side: int = 128, seed: int = 0) -> Batch:
    """Random days and tiles spread over a domain; a corner of every tile is sea."""
    random = torch.Generator().manual_seed(seed)
    shape = domain.coarse.shape
    scales = typical_scales()
    mean, spread = (torch.tensor(values * 2)[:, None, None] for values in (scales.mean, scales.spread))
    coarse = mean + spread * torch.randn(days, len(scales.mean) * 2, *shape, generator=random)
    corner = torch.tensor([[float(domain.north), float(domain.west)]]).repeat(days, 1)
    count = days * tiles
    room = torch.tensor([domain.north - domain.south, domain.east - domain.west]) - side * 0.01
    position = corner[:1] + torch.rand(count, 2, generator=random) * room * torch.tensor([-1, 1])
    pm25 = 40 * torch.rand(count, 2, side, side, generator=random)
    pm25[:, :, : side // 4, : side // 4] = torch.nan
    steps = (torch.arange(side) + 0.5) * 0.01
    lat = (position[:, 0, None] - steps)[:, :, None].expand(-1, -1, side)
    lon = (position[:, 1, None] + steps)[:, None].expand(-1, side, -1)
    elevation = 2000 * torch.rand(count, side, side, generator=random)
    return Batch(
        coarse=coarse,
        wind=coarse[:, [INDEX["u10"], INDEX["v10"]]],
        elevation=3000 * torch.rand(days, *shape, generator=random),
        corner=corner,
        fine=torch.stack([pm25[:, 0], elevation, lat, lon, pm25[:, 1]], dim=1),
        position=position,
        lead=torch.arange(count) % 3 + 1,
    )


def random_network(settings: NetworkSettings = TINY, seed: int = 0) -> CranPM:
    """A network in evaluation mode whose last convolution is no longer zero."""
    torch.manual_seed(seed)
    network = build(settings)
    nn.init.normal_(network.decoder.head.weight)
    return network.eval()
