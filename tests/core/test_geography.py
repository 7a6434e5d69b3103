import numpy as np
import pytest

from cranpm.core.errors import CranpmError
from cranpm.core.geography import load_region, region_of
from cranpm.core.grid import DOMAINS, Grid
from cranpm.simulate.climate import country_factors

ALPS = DOMAINS["alps"].fine
EUROPE = load_region("europe")


def at(field, lat, lon, grid=ALPS):
    row, col = (int(np.round(value)) for value in grid.row_col(lat, lon))
    return field[row, col]


@pytest.fixture(scope="module")
def alps():
    elevation, spread = EUROPE.elevation(ALPS)
    return elevation, spread, EUROPE.land(ALPS)


@pytest.mark.parametrize(
    ("lat", "lon", "is_land"),
    [(45.46, 9.19, True), (43.0, 9.0, False), (44.5, 13.0, False), (42.2, 9.1, True), (48.1, 11.6, True)],
    ids=["Milan", "Ligurian Sea", "Adriatic", "Corsica", "Munich"],
)
def test_coast(alps, lat, lon, is_land):
    assert bool(at(alps[2], lat, lon)) is is_land


def test_relief_is_where_it_belongs(alps):
    elevation, spread, land = alps
    assert 50 < at(elevation, 45.46, 9.19) < 250
    assert at(elevation, 45.83, 6.86) > 1800
    assert (elevation[~land] == 0).all()
    assert np.isfinite(elevation).all()
    assert elevation.max() < 4900
    rows, cols = ALPS.slices(47, 9, 46, 11)
    flat_rows, flat_cols = ALPS.slices(45.3, 9.5, 44.9, 11)
    assert spread[rows, cols].mean() > 5 * spread[flat_rows, flat_cols].mean()


def test_invented_relief_is_fixed_to_the_earth(alps):
    part = ALPS.window(slice(100, 300), slice(400, 700))
    assert np.allclose(EUROPE.elevation(part)[0], alps[0][100:300, 400:700], atol=0.01)


def test_towns():
    towns = EUROPE.towns
    assert len(towns) > 20_000
    assert (np.diff(towns.population) <= 0).all()
    index = towns.names.index("Milano") if "Milano" in towns.names else towns.names.index("Milan")
    assert (towns.lat[index], towns.lon[index]) == pytest.approx((45.46, 9.19), abs=0.05)
    assert towns.countries[index] == "IT"


@pytest.mark.parametrize("name", DOMAINS)
def test_every_named_domain_has_geography(name):
    region = region_of(DOMAINS[name].coarse.widen(2))
    assert 0.2 < region.land(DOMAINS[name].coarse).mean() < 0.95


def test_elsewhere_is_refused():
    with pytest.raises(CranpmError, match=r"packaged geography.*europe N 75"):
        region_of(Grid(-20, 20, 0.25, 40, 40))


def test_country_factors_fall_back():
    heating = country_factors("heating")
    assert heating["PL"] > heating["GB"]
    assert heating["default"] == 1
