"""CAMS from the Atmosphere Data Store: global reanalysis (EAC4), global forecasts, European analysis and forecasts.

Daily means of PM2.5, PM10, NO2, O3 and CO near the ground in ug m-3. Gases that come as mixing ratios are multiplied
by the density of air at the same time, from surface pressure and the lowest level's temperature and humidity.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np

from cranpm.channels import COARSE
from cranpm.errors import CranpmError
from cranpm.grid import Array, Domain
from cranpm.sources.base import DayReader, Reading, Request, Seen
from cranpm.sources.daily import Timeline
from cranpm.sources.era5 import by_month
from cranpm.sources.fields import Gridded, lacking, seen, variables
from cranpm.sources.files import Piece
from cranpm.sources.names import BY_NAME, RATIOS
from cranpm.sources.regrid import onto

SPECIES = {channel.name: channel.name.removeprefix("cams_") for channel in COARSE if channel.source == "cams"}
GAS_CONSTANT, VAPOUR = 287.05, 0.608
"""Of dry air, J kg-1 K-1; how much lighter moist air is."""
LOWEST = 60.0
"""The model level at the ground."""
RATIO_RANGE = (-1e-12, 1e-4)


class Cams:
    """Composition near the ground."""

    name = "cams"
    gives = tuple(SPECIES)

    def look(self, piece: Piece) -> Seen | None:
        found = variables(piece)
        if not any(variable.quantity.name in SPECIES.values() for variable in found):
            helpers = [variable for variable in found if variable.kind == "model"]
            return seen(piece, self.name, helpers) if helpers else None
        return seen(piece, self.name, found)

    def open(self, pieces: Sequence[Piece], domain: Domain, lenient: bool) -> DayReader:
        files = Gridded(pieces)

        def day_of(day: date) -> Reading:
            fields: dict[str, Array] = {}
            notes: list[str] = []
            for channel, species in SPECIES.items():
                timeline = files.timeline(species) or files.timeline(species, "model", LOWEST)
                if timeline is None:
                    if not lenient:
                        raise lacking(channel, day, self.name)
                    notes.append(f"{channel} missing")
                    continue
                times, note = timeline.present(day, timeline.step(day), 0, lenient)
                values = concentration(files, timeline, times).mean(axis=0, dtype=np.float64)
                notes += [note] if note else []
                on_grid = onto(np.maximum(values, 0), timeline.grid(), domain.coarse, timeline.some.what)
                if np.isnan(on_grid).any():
                    raise CranpmError(
                        expected=f"{channel} everywhere on {day}",
                        found=f"{np.isnan(on_grid).mean():.1%} of it missing",
                        remedy="Fetch it for the whole domain.",
                    )
                fields[channel] = on_grid
            return Reading(fields, tuple(notes))

        return day_of

    def requests(self, days: Sequence[date], domain: Domain) -> list[Request]:
        """EAC4, a month at a time; its area snaps inward, so it is asked for a little larger."""
        step = 0.75
        area = [
            min(90.0, np.ceil(domain.north / step) * step + step),
            max(-180.0, np.floor(domain.west / step) * step - step),
            max(-90.0, np.floor(domain.south / step) * step - step),
            min(180.0, np.ceil(domain.east / step) * step + step),
        ]
        cells = (area[0] - area[2]) * (area[3] - area[1]) / step**2 / 1000
        licence = (
            "https://ads.atmosphere.copernicus.eu/datasets/cams-global-reanalysis-eac4?tab=download#manage-licences"
        )
        found = []
        for (year, month), of_month in by_month(days).items():
            found.append(
                Request(
                    source=self.name,
                    name=f"cams-eac4_{year}-{month:02d}_{of_month[0].day:02d}-{of_month[-1].day:02d}.zip",
                    ask={
                        "collection": "cams-global-reanalysis-eac4",
                        "request": {
                            "variable": [
                                "particulate_matter_2.5um",
                                "particulate_matter_10um",
                                "surface_pressure",
                                "nitrogen_dioxide",
                                "ozone",
                                "carbon_monoxide",
                                "temperature",
                                "specific_humidity",
                            ],
                            "model_level": ["60"],
                            "date": [f"{of_month[0]}/{of_month[-1]}"],
                            "time": [f"{hour:02d}:00" for hour in range(0, 24, 3)],
                            "area": [float(edge) for edge in area],
                            "data_format": "netcdf_zip",
                        },
                    },
                    gigabytes=4e-6 * 8 * 8 * len(of_month) * cells,
                    licence=licence,
                )
            )
        return found


def concentration(files: Gridded, timeline: Timeline, times: Sequence[np.datetime64]) -> Array:
    """(time, row, column) in ug m-3."""
    variable = timeline.some
    if variable.unit not in RATIOS or not variable.quantity.ratios:
        return timeline.fields(times)
    ratio = np.concatenate([_one(timeline, time) for time in times])
    if np.nanmin(ratio) < RATIO_RANGE[0] or np.nanmax(ratio) > RATIO_RANGE[1]:
        raise CranpmError(
            expected=f"mixing ratios {RATIO_RANGE[0]:g}..{RATIO_RANGE[1]:g} kg kg-1 in {variable.what}",
            found=f"{np.nanmin(ratio):g}..{np.nanmax(ratio):g}",
            remedy="Check its unit.",
        )
    values = ratio * density(files, timeline, times) * 1e9
    quantity = BY_NAME[variable.quantity.name]
    if np.nanmax(values) > quantity.high:
        raise CranpmError(
            expected=f"at most {quantity.high:g} ug m-3 in {variable.what}",
            found=f"{np.nanmax(values):g}",
            remedy="Check its unit.",
        )
    return np.asarray(values)


def _one(timeline: Timeline, time: np.datetime64) -> Array:
    moment = timeline.moments[time]
    return moment.variable.read(np.array([moment.time]), moment.level).astype(np.float64)


def density(files: Gridded, timeline: Timeline, times: Sequence[np.datetime64]) -> Array:
    """Of moist air at the ground, kg m-3, on the gas's own grid and times."""
    found = {}
    helpers: dict[str, Timeline | None] = {
        "sp": files.timeline("sp"),
        "t": files.timeline("t", "model", LOWEST),
        "q": files.timeline("q", "model", LOWEST),
    }
    for name, helper in helpers.items():
        if helper is None or any(time not in helper.moments for time in times):
            raise CranpmError(
                expected=f"{name} beside the mixing ratio in {timeline.some.what}, for the density of air",
                found="none for some of its times",
                remedy="Fetch surface_pressure, and temperature and specific_humidity on model level 60, too.",
            )
        if not np.array_equal(helper.some.place.lat, timeline.some.place.lat):
            raise CranpmError(
                expected=f"{name} on the grid of {timeline.some.what}",
                found="another",
                remedy="Fetch both in one request.",
            )
        found[name] = helper.fields(times).astype(np.float64)
    return np.asarray(found["sp"] / (GAS_CONSTANT * found["t"] * (1 + VAPOUR * found["q"])))
