"""One branch of the network: a field becomes tokens that know their surroundings."""

from collections.abc import Mapping
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cranpm.network.attention import Block
from cranpm.network.cranpm_settings import BranchSettings, NetworkSettings
from cranpm.network.elevation_attention import ElevationAttention, highest_between
from cranpm.network.interface import Parts
from cranpm.network.patches import PatchEmbedding, pad, patch_mean, sine_cosine
from cranpm.network.swin import WindowAttention
from cranpm.network.wind import WindScan, upwind_on_grid


def branch_parts(branches: Mapping[str, nn.Module], bridge: nn.Module, decoder: nn.Module) -> Parts:
    """The parts of a network with encoders `coarse` and `fine`, a bridge and a decoder."""
    found: dict[tuple[str, str], list[nn.Module]] = {}
    for name, branch in branches.items():
        stage, (first, *others) = "day" if name == "coarse" else "tile", cast(nn.ModuleList, branch.blocks)
        found[stage, f"{name} patches"] = [cast(nn.Module, branch.patches)]
        found[stage, f"{name} elevation block"] = [first]
        found[stage, f"{name} blocks"] = [*others, cast(nn.Module, branch.norm)]
    return found | {("tile", "bridge"): [bridge], ("tile", "decoder"): [decoder]}


class Encoder(nn.Module):
    """Patches, positions, one elevation-aware block, Swin blocks (paper, Sec. 3.3).

    `upwind_step` is the side of a token in degrees where, instead of the wind scan, tokens keep their places and look
    upwind by a bias. Grids that are not whole windows are padded; nothing ever looks at the padding.
    """

    def __init__(
        self, branch: BranchSettings, channels: int, settings: NetworkSettings, upwind_step: float | None = None
    ):
        super().__init__()
        self.upwind_step, self.barrier = upwind_step, settings.elevation_bias and settings.elevation_form == "barrier"
        self.patch, self.window = branch.patch, branch.window
        self.patches = PatchEmbedding(channels, branch.patch, branch.width)
        self.dropout = nn.Dropout(settings.dropout)
        scale_m = branch.elevation_scale_m if settings.elevation_bias else None
        attentions = [
            ElevationAttention(branch.width, branch.heads, branch.tokens, scale_m, upwind_step is not None),
            *(
                WindowAttention(branch.width, branch.heads, branch.window, shifted=index % 2 == 1)
                for index in range(branch.depth)
            ),
        ]
        self.blocks = nn.ModuleList(
            Block(attention, branch.width, settings.mlp_ratio, settings.drop_path * index / branch.depth)
            for index, attention in enumerate(attentions)
        )
        self.norm = nn.LayerNorm(branch.width)
        self.recompute = False
        """In training, compute blocks again for their gradients instead of keeping their activations."""

    def forward(
        self,
        field: Float[Tensor, "b ch h w"],
        elevation_m: Float[Tensor, "b h w"],
        added: Float[Tensor, "#b #rows #cols width"] | None = None,
        wind: Float[Tensor, "b 2 h w"] | None = None,
        corner: Float[Tensor, "b 2"] | None = None,
    ) -> Float[Tensor, "b rows cols width"]:
        """Tokens of a normalised field; `added` is put on the tokens, `wind` orders the scan.

        Where it makes a bias instead, `corner` says where the field lies.
        """
        tokens = self.patches(field)
        rows, cols, width = tokens.shape[1:]
        tokens = tokens + sine_cosine(rows, cols, width, tokens.device)
        if added is not None:
            tokens = tokens + added
        elevation_m = patch_mean(elevation_m, self.patch)
        scan = upwind = None
        if wind is not None and corner is not None and self.upwind_step is not None:
            upwind = upwind_on_grid(pad(patch_mean(wind, self.patch), self.window), corner, self.upwind_step)
        elif wind is not None:
            scan = WindScan.along(wind, self.patch, self.window)
        return self._mix(self.dropout(tokens), elevation_m, scan, upwind)

    def _run(self, block: nn.Module, *arguments: Tensor | None) -> Tensor:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(block, *arguments, use_reentrant=False)
        return block(*arguments)

    def _mix(self, tokens: Tensor, elevation_m: Tensor, scan: WindScan | None, upwind: Tensor | None) -> Tensor:
        rows, cols = tokens.shape[1:3]
        tokens = pad(tokens.permute(0, 3, 1, 2), self.window).permute(0, 2, 3, 1)
        elevation_m = pad(elevation_m, self.window)
        grid = (elevation_m.shape[1], elevation_m.shape[2])
        valid = None
        if tokens.shape[1:3] != (rows, cols):
            valid = torch.zeros_like(elevation_m, dtype=torch.bool)
            valid[:, :rows, :cols] = True
        highest_m = highest_between(elevation_m) if self.barrier else None
        if scan is not None:
            tokens, elevation_m = scan.scan(tokens), scan.scan(elevation_m)
            valid = valid if valid is None else scan.scan(valid)
            highest_m = highest_m if highest_m is None else scan.scan_pairs(highest_m, grid)
        first, *others = self.blocks
        tokens = self._run(first, tokens, elevation_m, valid, highest_m, upwind)
        for block in others:
            tokens = self._run(block, tokens, valid)
        tokens = tokens if scan is None else scan.unscan(tokens)
        return self.norm(tokens[:, :rows, :cols])
