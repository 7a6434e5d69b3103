"""Moving pollution with the wind: semi-Lagrangian, piecewise parabolic, any Courant number.

A sweep along one axis traces each cell's two edges back to where the air came from and takes the mean of the old
field between them, so a constant stays constant and nothing overshoots. Where the flow converges along the axis,
more air arrives than fits: the surplus leaves the layer upwards, and subsiding air fills what diverges. That exchange
and the flow through the borders are returned, so that a budget can be closed.
"""

from dataclasses import dataclass

import numba
import numpy as np

from cranpm.core.grid import EARTH_RADIUS_KM, Array, Grid


@dataclass(frozen=True)
class Moved:
    """A field after one step, and what the step brought into the domain (concentration x weight)."""

    field: Array
    inflow: float
    """Through the borders; negative is outflow."""
    exchange: float
    """From aloft; negative is lost upwards."""


def step(field: Array, u_ms: Array, v_ms: Array, grid: Grid, seconds: float, inflow: float, *, x_first: bool) -> Moved:
    """The field after `seconds` of wind; weights are the cosine of latitude."""
    metres = np.radians(grid.step) * EARTH_RADIUS_KM * 1e3
    cosine = np.cos(np.radians(grid.lat))
    east = u_ms * (seconds / metres) / cosine[:, None]
    south = -v_ms * (seconds / metres)
    return move(field, east, south, cosine, inflow, x_first=x_first)


def move(field: Array, east: Array, south: Array, row_weight: Array, inflow: float, *, x_first: bool) -> Moved:
    """The field after a displacement given in cells: `east` along the columns, `south` along the rows."""
    inflow_sum = exchange_sum = 0.0
    for along_x in (x_first, not x_first):
        if along_x:
            field, flow, exchange = _sweep(field, _at_edges(east), np.ones(field.shape[1]), inflow)
            flow, exchange = flow * row_weight, exchange * row_weight
        else:
            turned, flow, exchange = _sweep(
                np.ascontiguousarray(field.T), _at_edges(np.ascontiguousarray(south.T)), row_weight, inflow
            )
            field = np.ascontiguousarray(turned.T)
        inflow_sum += float(flow.sum())
        exchange_sum += float(exchange.sum())
    return Moved(field, inflow_sum, exchange_sum)


def _at_edges(displacement: Array) -> Array:
    """Displacement of the cell edges along the last axis."""
    edges = np.empty((displacement.shape[0], displacement.shape[1] + 1))
    edges[:, 1:-1] = 0.5 * (displacement[:, 1:] + displacement[:, :-1])
    edges[:, 0], edges[:, -1] = displacement[:, 0], displacement[:, -1]
    return edges


@numba.njit(parallel=True, cache=True)
def _sweep(field: Array, shift: Array, weight: Array, inflow: float) -> tuple[Array, Array, Array]:  # pragma: no cover
    """One sweep along the last axis; returns the new field, and inflow and exchange of every row."""
    rows, cells = field.shape
    out = np.empty_like(field)
    flow, exchange = np.empty(rows), np.empty(rows)
    for row in numba.prange(rows):
        values = field[row]
        left, right = _parabolas(values)
        mass, space = np.zeros(cells + 1), np.zeros(cells + 1)
        for j in range(cells):
            mass[j + 1] = mass[j] + values[j] * weight[j]
            space[j + 1] = space[j] + weight[j]
        last_place, last_mass, last_space, surplus = -1e30, 0.0, 0.0, 0.0
        for j in range(cells + 1):
            place = max(_departure(shift[row], j), last_place + 1e-3)
            if place <= 0.0:
                here_mass, here_space = place * weight[0] * inflow, place * weight[0]
            elif place >= cells:
                here_mass = mass[cells] + (place - cells) * weight[cells - 1] * inflow
                here_space = space[cells] + (place - cells) * weight[cells - 1]
            else:
                i = int(place)
                xi = place - i
                bend = 6.0 * (values[i] - 0.5 * (left[i] + right[i]))
                part = left[i] * xi + 0.5 * xi * xi * (right[i] - left[i] + bend * (1.0 - 2.0 / 3.0 * xi))
                here_mass, here_space = mass[i] + weight[i] * part, space[i] + weight[i] * xi
            if j == 0:
                flow[row] = -here_mass
            else:
                out[row, j - 1] = (here_mass - last_mass) / (here_space - last_space)
                surplus += out[row, j - 1] * (weight[j - 1] - (here_space - last_space))
            last_place, last_mass, last_space = place, here_mass, here_space
        flow[row] += last_mass - mass[cells]
        exchange[row] = surplus
    return out, flow, exchange


@numba.njit(cache=True)
def _departure(shift: Array, edge: int) -> float:  # pragma: no cover
    """Where the air at an edge was one step ago, by the midpoint rule, in cells."""
    middle = min(max(edge - 0.5 * shift[edge], 0.0), shift.size - 1.0)
    i = min(int(middle), shift.size - 2)
    return float(edge - (shift[i] + (middle - i) * (shift[i + 1] - shift[i])))


@numba.njit(cache=True)
def _parabolas(values: Array) -> tuple[Array, Array]:  # pragma: no cover
    """Monotone left and right edge values of every cell (Colella and Woodward 1984)."""
    n = values.size
    edge = np.empty(n + 1)
    edge[0], edge[n] = values[0], values[n - 1]
    for j in range(1, n):
        low, high = values[j - 1], values[j]
        edge[j] = 0.5 * (low + high)
        if 1 < j < n - 1:
            edge[j] = (7.0 * (low + high) - values[j - 2] - values[j + 1]) / 12.0
        edge[j] = min(max(edge[j], min(low, high)), max(low, high))
    left, right = np.empty(n), np.empty(n)
    for j in range(n):
        a, b, mean = edge[j], edge[j + 1], values[j]
        jump, lean = b - a, mean - 0.5 * (a + b)
        if (b - mean) * (mean - a) <= 0.0:
            a = b = mean
        elif jump * lean > jump * jump / 6.0:
            a = 3.0 * mean - 2.0 * b
        elif jump * lean < -jump * jump / 6.0:
            b = 3.0 * mean - 2.0 * a
        left[j], right[j] = a, b
    return left, right
