"""Windows, shifts, masks and relative positions against slow references."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cranpm.network.attention import DropPath, RelativeBias, SelfAttention, attend
from cranpm.network.patches import PatchEmbedding, pad, patch_mean, sine_cosine
from cranpm.network.swin import WindowAttention, from_windows, to_windows


def naive_attention(core: SelfAttention, tokens: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """tokens (n, width), bias (heads, n, n): written out, head by head."""
    query, key, value = core.qkv(tokens).chunk(3, dim=1)
    size = tokens.shape[1] // core.heads
    heads = []
    for head in range(core.heads):
        part = slice(head * size, (head + 1) * size)
        logits = query[:, part] @ key[:, part].T / size**0.5 + bias[head]
        heads.append(logits.softmax(dim=1) @ value[:, part])
    return core.out(torch.cat(heads, dim=1))


def naive_windows(module: WindowAttention, tokens: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """One sample (rows, cols, width): windows are lists of the tokens that lie between the shifted raster's lines.

    No token is moved around the edge, so no mask for that is needed.
    """
    rows, cols = tokens.shape[:2]
    window = module.window

    def pieces(size: int) -> list[range]:
        shift = module.shift if size > window else 0
        edges = sorted({0, size, *range(shift, size, window)})
        return [range(low, high) for low, high in pairwise(edges)]

    result = torch.zeros_like(tokens)
    reach = window - 1
    for row_piece in pieces(rows):
        for col_piece in pieces(cols):
            places = [(row, col) for row in row_piece for col in col_piece]
            bias = torch.empty(module.attention.heads, len(places), len(places))
            for i, (row, col) in enumerate(places):
                for j, (key_row, key_col) in enumerate(places):
                    index = (row - key_row + reach) * (2 * window - 1) + col - key_col + reach
                    bias[:, i, j] = module.relative.table[:, index] if valid[key_row, key_col] else -torch.inf
            if not any(valid[place] for place in places):
                continue
            group = torch.stack([tokens[place] for place in places])
            for place, mixed in zip(places, naive_attention(module.attention, group, bias), strict=True):
                result[place] = mixed
    return result


def test_a_bias_that_learns_changes_nothing_but_the_gradient():
    """It takes another path through torch than one that is fixed."""
    random = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 3, length, 8, generator=random) for length in (5, 7, 7))
    bias = torch.randn(2, 3, 5, 7, generator=random)
    fixed, learned = attend(query, key, value, bias), attend(query, key, value, bias.clone().requires_grad_())
    assert torch.allclose(fixed, learned, atol=1e-6)
    assert learned.requires_grad


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("grid", [(4, 4), (8, 12), (12, 4)])
@pytest.mark.parametrize("kept", [None, (7, 9), (2, 3)])
def test_windows_against_explicit_windows(shifted, grid, kept):
    torch.manual_seed(0)
    module = WindowAttention(width=12, heads=3, window=4, shifted=shifted)
    torch.nn.init.normal_(module.relative.table)
    tokens = torch.randn(2, *grid, 12)
    valid = torch.ones(2, *grid, dtype=torch.bool)
    if kept is not None:
        valid[:, kept[0] :] = False
        valid[:, :, kept[1] :] = False
    with torch.no_grad():
        fast = module(tokens, None if kept is None else valid)
        for sample in range(2):
            slow = naive_windows(module, tokens[sample], valid[sample])
            assert (fast[sample] - slow)[valid[sample]].abs().max() < 1e-5


def test_padding_never_reaches_a_real_token():
    torch.manual_seed(0)
    module = WindowAttention(width=8, heads=2, window=4, shifted=True)
    tokens = torch.randn(1, 8, 8, 8)
    valid = torch.ones(1, 8, 8, dtype=torch.bool)
    valid[:, 5:] = False
    other = torch.where(valid[..., None], tokens, 1e3 * torch.randn_like(tokens))
    assert torch.equal(module(tokens, valid)[valid], module(other, valid)[valid])
    assert not torch.equal(module(tokens, None)[valid], module(other, None)[valid])


def test_windows_round_trip():
    grid = torch.randn(2, 6, 9, 5)
    windows = to_windows(grid, 3)
    assert windows.shape == (2 * 2 * 3, 9, 5)
    assert torch.equal(windows[1], grid[0, :3, 3:6].reshape(9, 5))
    assert torch.equal(from_windows(windows, 3, 6, 9), grid)


@given(rows=st.integers(1, 6), cols=st.integers(1, 6), table=st.tuples(st.integers(1, 4), st.integers(1, 4)))
@settings(deadline=None, max_examples=40)
def test_relative_positions_clamp_beyond_the_table(rows, cols, table):
    bias = RelativeBias(2, *table)
    got = bias(rows, cols)
    places = [(row, col) for row in range(rows) for col in range(cols)]
    for i, (row, col) in enumerate(places):
        for j, (key_row, key_col) in enumerate(places):
            down = max(-table[0] + 1, min(table[0] - 1, row - key_row)) + table[0] - 1
            right = max(-table[1] + 1, min(table[1] - 1, col - key_col)) + table[1] - 1
            assert torch.equal(got[:, i, j], bias.table[:, down * (2 * table[1] - 1) + right])


def test_patches_are_a_strided_convolution():
    torch.manual_seed(0)
    embedding = PatchEmbedding(channels=3, patch=4, width=7)
    field = torch.randn(2, 3, 8, 12)
    convolved = torch.nn.functional.conv2d(field, embedding.weight.view(7, 3, 4, 4), embedding.bias, stride=4)
    assert torch.allclose(embedding(field), convolved.permute(0, 2, 3, 1), atol=1e-5)


def test_a_field_is_padded_south_and_east():
    field = torch.arange(6.0).view(1, 2, 3)
    assert pad(field, 3).tolist() == [[[0, 1, 2], [3, 4, 5], [3, 4, 5]]]
    assert pad(field, 1) is field
    assert patch_mean(field, 2).tolist() == [[[2.0, 3.5]]]  # the last patch has one column


def test_positions_tell_column_then_row():
    positions = sine_cosine(3, 5, 8)
    assert torch.equal(positions[0, :, :4], positions[2, :, :4])
    assert torch.equal(positions[:, 0, 4:], positions[:, 4, 4:])
    assert positions[1, 3, :4] == pytest.approx(
        [0.14112, 0.0299955, -0.989992, 0.99955], abs=1e-5
    )  # sin 3, sin .03, cos
    assert positions[1, 3, 4:] == pytest.approx([0.841471, 0.0099998, 0.540302, 0.99995], abs=1e-5)


def test_drop_path_skips_whole_samples_and_keeps_the_mean():
    torch.manual_seed(0)
    drop = DropPath(0.25)
    x = torch.ones(4000, 2, 3)
    kept = drop(x)
    assert kept[:, 0, 0].unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert torch.equal(kept.amin(dim=(1, 2)), kept.amax(dim=(1, 2)))
    assert kept.mean() == pytest.approx(1, abs=0.03)
    assert drop.eval()(x) is x
