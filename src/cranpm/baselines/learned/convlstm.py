"""ConvLSTM (Shi et al. 2015): layers of recurrent convolutions read the days, others roll the forecast out."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cranpm.baselines.learned.backbone import Backbone, BackboneSettings, ToCells
from cranpm.network.patches import pad

State = tuple[Tensor, Tensor]


class Cell(nn.Module):
    """An LSTM whose products are 3 x 3 convolutions."""

    def __init__(self, width: int):
        super().__init__()
        self.gates = nn.Conv2d(2 * width, 4 * width, 3, padding=1)

    def forward(self, x: Float[Tensor, "b ch h w"], state: State) -> State:
        hidden, memory = state
        let_in, forget, out, fresh = self.gates(torch.cat([x, hidden], dim=1)).chunk(4, dim=1)
        memory = torch.sigmoid(forget + 1) * memory + torch.sigmoid(let_in) * torch.tanh(fresh)
        return torch.sigmoid(out) * torch.tanh(memory), memory


class ConvLSTM(Backbone):
    """An encoder that reads yesterday and today, and a forecaster that begins with its states."""

    def __init__(
        self, settings: BackboneSettings, channels: int, shape: tuple[int, int], leads: Sequence[int], outputs: int
    ):
        super().__init__(settings, channels, shape, leads, outputs)
        width, patch = settings.width, settings.patch
        self.embed = nn.Conv2d(channels, width, patch, stride=patch)
        self.reading = nn.ModuleList(Cell(width) for _ in range(settings.depth))
        self.rolling = nn.ModuleList(Cell(width) for _ in range(settings.depth))
        self.out = ToCells(width, patch, outputs)

    def forward(
        self, frames: Float[Tensor, "b t ch h w"], wind: Float[Tensor, "b 2 h w"], elevation_m: Float[Tensor, "b h w"]
    ) -> Float[Tensor, "b leads out h w"]:
        shape = (frames.shape[3], frames.shape[4])
        steps = [self.embed(pad(frames[:, index], self.settings.patch)) for index in range(frames.shape[1])]
        empty = torch.zeros_like(steps[0])
        states: list[State] = [(empty, empty) for _ in self.reading]
        for step in steps:
            step, states = _through(self.reading, step, states)
        forecasts = {}
        step = empty
        for ahead in range(1, max(self.leads) + 1):
            step, states = _through(self.rolling, step, states)
            if ahead in self.leads:
                forecasts[ahead] = self.out(step, shape)
        return torch.stack([forecasts[lead] for lead in self.leads], dim=1)


def _through(cells: nn.ModuleList, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
    """One step of all layers: what comes out of the last, and the new states."""
    after = []
    for cell, state in zip(cells, states, strict=True):
        state = cell(x, state)
        x = state[0]
        after.append(state)
    return x, after
