"""The days ahead as input: which groups of forecasts a network reads, in which form, and what stands for an absent one.

For lead tau of start day t the fields are of two slots, the target day t+tau and the mean over the way t+1..t+tau; or
of one slot for each day of the way, counted back from the target. Each group has a mask in each slot: where it is 0,
the network sees 0, the mean, whatever the numbers are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from cranpm.core.channels import GROUPS
from cranpm.core.errors import CranpmError

AheadName = Literal["none", "weather", "weather+composition"]
WayName = Literal["mean", "slots"]
READ: dict[AheadName, tuple[str, ...]] = {"none": (), "weather": GROUPS[:1], "weather+composition": GROUPS}
"""The groups that each setting reads."""


@dataclass(frozen=True)
class AheadForm:
    """What a network reads of the days ahead."""

    groups: tuple[str, ...]
    sizes: tuple[int, ...]
    """Channels of each of the groups."""
    way: WayName
    slots: int
    furthest: int
    """The longest lead, in days."""

    @classmethod
    def of(cls, ahead: AheadName, way: WayName, sizes: Sequence[int], leads: Sequence[int]) -> "AheadForm":
        groups = READ[ahead]
        slots = 0 if not groups else 2 if way == "mean" else max(leads)
        return cls(groups, tuple(sizes[: len(groups)]), way, slots, max(leads) if groups else 0)

    @property
    def channels(self) -> int:
        """Fields of one slot."""
        return sum(self.sizes)

    @property
    def inputs(self) -> int:
        """Fields and masks of all slots."""
        return self.slots * (self.channels + len(self.groups))

    def check(self, ahead: Tensor | None, known: Tensor | None) -> None:
        """Refuse fields or masks of another form."""
        found = None if ahead is None or known is None else (*ahead.shape[1:3], *known.shape[1:])
        wanted = (self.slots, self.channels, self.slots, len(self.groups))
        if found != wanted:
            raise CranpmError(
                expected=f"days ahead of {self.slots} slots x {self.channels} channels, with a mask for each of "
                f"{' and '.join(self.groups)}",
                found="none" if found is None else f"{found[0]} x {found[1]}, masks {found[2]} x {found[3]}",
                remedy="Give Inputs the settings of this network, and a lead to its `day`.",
            )

    def normalised(
        self,
        ahead: Float[Tensor, "days slots ch h w"],
        known: Float[Tensor, "days slots groups"],
        mean: Float[Tensor, "ch 1 1"],
        spread: Float[Tensor, "ch 1 1"],
    ) -> Float[Tensor, "days inputs h w"]:
        """Fields of the size of 1, 0 where their group is unknown, and after each slot's fields its masks."""
        sizes = torch.tensor(self.sizes, device=known.device)
        there = known.repeat_interleave(sizes, dim=2)[..., None, None] > 0
        fields = torch.where(there, (ahead - mean) / spread, 0.0)
        masks = known[..., None, None].expand(-1, -1, -1, *ahead.shape[3:])
        return torch.cat([fields, masks.to(fields.dtype)], dim=2).flatten(1, 2)


NOTHING_AHEAD = AheadForm((), (), "mean", 0, 0)
