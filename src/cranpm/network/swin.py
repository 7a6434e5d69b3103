"""Attention inside windows that shift by half on every other block (Liu et al. 2021), in plain torch."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from cranpm.network.attention import BLOCKED, RelativeBias, SelfAttention, key_mask


class WindowAttention(nn.Module):
    """Tokens attend to those of their own window x window square; sides must be whole windows."""

    def __init__(self, width: int, heads: int, window: int, shifted: bool):
        super().__init__()
        self.window, self.shift = window, window // 2 if shifted else 0
        self.attention = SelfAttention(width, heads)
        self.relative = RelativeBias(heads, window, window)

    def forward(
        self, tokens: Float[Tensor, "b rows cols width"], valid: Bool[Tensor, "b rows cols"] | None
    ) -> Float[Tensor, "b rows cols width"]:
        rows, cols = tokens.shape[1:3]
        shift = tuple(self.shift if side > self.window else 0 for side in (rows, cols))
        tokens = torch.roll(tokens, (-shift[0], -shift[1]), dims=(1, 2)) if any(shift) else tokens
        bias = self._bias(tokens, shift, valid)
        windows = to_windows(tokens, self.window)
        mixed = from_windows(self.attention(windows, bias), self.window, rows, cols)
        return torch.roll(mixed, shift, dims=(1, 2)) if any(shift) else mixed

    def _bias(
        self, tokens: Float[Tensor, "b rows cols width"], shift: tuple[int, ...], valid: Tensor | None
    ) -> Float[Tensor, "#windows heads n n"]:
        """Relative positions, plus what may not see each other: pieces that rolled around the edge, and padding."""
        batch, rows, cols, _ = tokens.shape
        bias = self.relative(self.window, self.window)[None]
        if any(shift):
            apart = rolled_apart(rows, cols, self.window, shift, tokens.device)
            bias = (bias + apart[:, None]).repeat(batch, 1, 1, 1)
        if valid is not None:
            rolled = torch.roll(valid, (-shift[0], -shift[1]), dims=(1, 2))
            bias = bias + key_mask(to_windows(rolled[..., None], self.window).squeeze(2))
        return bias


def to_windows(grid: Tensor, window: int) -> Tensor:
    """(b, rows, cols, width) -> (b x windows, window x window, width)."""
    squares = grid.unflatten(2, (-1, window)).unflatten(1, (-1, window))  # b R w C w width
    return squares.transpose(2, 3).flatten(0, 2).flatten(1, 2)


def from_windows(windows: Tensor, window: int, rows: int, cols: int) -> Tensor:
    """The inverse of `to_windows`."""
    squares = windows.unflatten(1, (window, window)).unflatten(0, (-1, rows // window, cols // window))
    return squares.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def rolled_apart(
    rows: int, cols: int, window: int, shift: tuple[int, ...], device: torch.device
) -> Float[Tensor, "windows n n"]:
    """BLOCKED for pairs of one window that the roll brought together from opposite edges, else 0."""
    row, col = (torch.arange(size, device=device) >= size - by for size, by in zip((rows, cols), shift, strict=True))
    piece = 2 * row.int()[:, None] + col.int()  # which of the up to four pieces a token belongs to
    piece = to_windows(piece[None, :, :, None], window).squeeze(2)
    return torch.zeros(1, device=device).where(piece[:, :, None] == piece[:, None, :], BLOCKED)
