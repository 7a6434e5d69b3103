"""Small files of forecast models, with fields that are linear in space and time: days can be worked out by hand."""

import json
import zipfile
from datetime import datetime, timedelta

import netCDF4
import numpy as np
import pyproj  # noqa: F401  before eccodes: the other order can crash PROJ

import eccodes  # isort: skip

from cranpm.core.channels import CHANNELS, LEVELS_HPA, PAPER_CHANNELS
from cranpm.providers.netcdf_layout import MADE_UP
from cranpm.providers.quantities import GRAVITY
from cranpm.providers.readers.grib import MADE_UP_STATUS

WEATHER = [channel.name for channel in PAPER_CHANNELS if channel.group == "weather"]
COMPOSITION = [channel.name for channel in PAPER_CHANNELS if channel.group == "composition"]
PARAMS = {"u10": "10u", "v10": "10v", "t2m": "2t"}
UNITS = {"u": "m s**-1", "v": "m s**-1", "t": "K", "z": "m**2 s**-2", "q": "kg kg**-1", "sp": "Pa", "tp": "m"}
GAS_RATIO = 1e-8
"""kg kg-1 of each gas in CAMS's global forecasts here."""


def nodes(domain, step=0.25, margin=0.75):
    """Latitudes (falling) and longitudes (rising) of nodes around a domain."""
    rows, cols = (
        round((edges + 2 * margin) / step) + 1 for edges in (domain.north - domain.south, domain.east - domain.west)
    )
    return domain.north + margin - step * np.arange(rows), domain.west - margin + step * np.arange(cols)


def value(name, hour, lat, lon, offset=0.0):
    """A channel so many hours after the start of a run; of rain, the sum since then. Linear in space and hours."""
    if name == "tp":
        return rain(hour) * (1 + 0 * lat + 0 * lon)
    channel = CHANNELS[name]
    return channel.mean + channel.spread * (0.01 * hour + 0.02 * (lat - 45) + 0.01 * (lon - 10) + offset)


def rain(hour):
    """Metres since the start of a run."""
    return 1e-6 * hour**2


def day_of_run(name, begin, every, domain, offset=0.0):
    """The channel on the day that begins so many hours after the start of a run, on the coarse grid."""
    lat, lon = domain.coarse.lat[:, None], domain.coarse.lon[None, :]
    if name == "tp":
        return np.full(domain.coarse.shape, rain(begin + 24) - rain(begin))
    return np.mean([value(name, hour, lat, lon, offset) for hour in range(begin, begin + 24, every)], axis=0)


def message(name, start, step, values, lat, lon, kind="od"):
    """One field as ECMWF's open data have it, of a channel by its name."""
    channel = CHANNELS[name]
    level = channel.level_hpa
    aloft = {"z": "gh"}.get(name[0], name[0])
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2" if level else "regular_ll_sfc_grib2")
    keys = {
        "centre": "ecmf",
        "tablesVersion": 33,
        "productionStatusOfProcessedData": MADE_UP_STATUS,
        "setLocalDefinition": 1,
        "class": kind,
        "type": "fc",
        "stream": "oper",
        "Ni": len(lon),
        "Nj": len(lat),
        "latitudeOfFirstGridPointInDegrees": float(lat[0]),
        "latitudeOfLastGridPointInDegrees": float(lat[-1]),
        "longitudeOfFirstGridPointInDegrees": float(lon[0]) % 360,
        "longitudeOfLastGridPointInDegrees": float(lon[-1]) % 360,
        "iDirectionIncrementInDegrees": float(lat[0] - lat[1]),
        "jDirectionIncrementInDegrees": float(lat[0] - lat[1]),
        "dataDate": int(f"{start:%Y%m%d}"),
        "dataTime": start.hour * 100,
        "shortName": aloft if level else PARAMS.get(name, name),
        **({"level": level} if level else {}),
        "stepRange": f"0-{step}" if name == "tp" else str(step),
        "bitsPerValue": 24,
    }
    try:
        for key, setting in keys.items():
            eccodes.codes_set(handle, key, setting)
        scale = 1 / GRAVITY if aloft == "gh" else 1.0
        eccodes.codes_set_values(handle, np.ascontiguousarray(values, float).ravel() * scale)
        return eccodes.codes_get_message(handle)
    finally:
        eccodes.codes_release(handle)


def run_messages(start, steps, domain, *, kind="od", offset=0.0, leave_out=()):
    """(name, step, bytes) of all fields of a run; `leave_out` are (name, step)."""
    lat, lon = nodes(domain)
    for step in steps:
        for name in WEATHER:
            if (name, step) not in leave_out and not (name == "tp" and step == 0):
                values = value(name, step, lat[:, None], lon[None, :], offset)
                yield name, step, message(name, start, step, values, lat, lon, kind)


def write_run(path, start, steps, domain, **settings):
    """A run in one GRIB file."""
    path.write_bytes(b"".join(data for _, _, data in run_messages(start, steps, domain, **settings)))
    return path


def write_mirror(folder, place, start, steps, domain, **settings):
    """A run as ECMWF lays it out: a file for each step, and an index beside it, with fields that nobody asked for."""
    parts = {}
    for name, step, data in run_messages(start, steps, domain, **settings):
        parts.setdefault(step, []).append((name, data))
    for step, fields in parts.items():
        target = folder / place.format(step=step)
        target.parent.mkdir(parents=True, exist_ok=True)
        lines, content = [{"levtype": "sfc", "param": "msl", "_offset": 0, "_length": 4}], b"junk"
        for name, data in fields:
            level = CHANNELS[name].level_hpa
            about = {"levtype": "pl", "levelist": str(level)} if level else {"levtype": "sfc"}
            param = {"z": "gh"}.get(name[0], name[0]) if level else PARAMS.get(name, name)
            lines.append({**about, "param": param, "_offset": len(content), "_length": len(data)})
            content += data + (b"" if name[0] == "q" else b"??")
        target.with_suffix(".grib2").write_bytes(content)
        target.with_suffix(".index").write_text("\n".join(map(json.dumps, lines)) + "\n")


def _axes(file, lat, lon):
    for name, values in (("latitude", lat), ("longitude", lon)):
        file.createDimension(name, len(values))
        file.createVariable(name, "f8", (name,))[:] = values


def write_europe(path, day, hours, domain, kind="FORECAST", offset=0.0):
    """The European ensemble: the epoch in a name, longitudes 0..360, a classic file."""
    lat, lon = nodes(domain, 0.1)
    lat, lon = lat[:-1] - 0.05, lon[:-1] + 0.05
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.institution = MADE_UP
        _axes(file, lat, lon % 360)
        for name, values in (("level", [0.0]), ("time", hours)):
            file.createDimension(name, len(values))
            file.createVariable(name, "f4", (name,))[:] = values
        file["level"].units = "m"
        file["time"].units, file["time"].long_name = "hours", f"{kind} time from {day:%Y%m%d}"
        for name, stored in zip(COMPOSITION, ("pm2p5", "pm10", "no2", "o3", "co"), strict=True):
            field = file.createVariable(
                f"{stored}_conc", "f4", ("time", "level", "latitude", "longitude"), fill_value=-999.0
            )
            field.units = "µg/m3"
            at = np.asarray(hours, float)[:, None, None]
            field[:] = value(name, at, lat[:, None], lon[None, :], offset)[:, None]
    return path


def write_global(path, start, hours, domain, runs=1):
    """CAMS's global forecast: a ZIP of surface, pressure levels and the lowest model level; gases as mixing ratios."""
    lat, lon = nodes(domain, 0.4, 0.8)
    starts = [start + timedelta(days=number) for number in range(runs)]
    at = np.asarray(hours, float)[:, None, None, None] + np.zeros((1, runs, 1, 1))
    here = (at, lat[:, None], lon[None, :])
    surface = {name: (UNITS.get(name, UNITS.get(name[0], "")), value(name, *here)) for name in WEATHER[:5]}
    surface |= {
        stored: ("kg m**-3", value(name, *here) / 1e9)
        for name, stored in (("cams_pm25", "pm2p5"), ("cams_pm10", "pm10"))
    }
    aloft = {
        letter: (UNITS[letter], np.stack([value(f"{letter}{level}", *here) for level in LEVELS_HPA], axis=2))
        for letter in "uvtzq"
    }
    shape = (len(hours), runs, 1, len(lat), len(lon))
    lowest = {name: ("kg kg**-1", np.full(shape, GAS_RATIO * factor)) for name, factor in RATIOS.items()}
    lowest |= {"t": ("K", np.full(shape, 288.15)), "q": ("kg kg**-1", np.full(shape, 0.0))}
    parts = (("sfc", surface, None), ("plev", aloft, ("pressure_level", LEVELS_HPA, "hPa")))
    with zipfile.ZipFile(path, "w") as archive:
        for name, fields, levels in (*parts, ("mlev", lowest, ("model_level", (137,), "1"))):
            member = path.with_name(f"data_{name}.nc")
            _write_runs(member, starts, hours, (lat, lon), levels, fields)
            archive.write(member, member.name)
            member.unlink()
    return path


RATIOS = {"no2": 1.0, "go3": 8.0, "co": 20.0}


def _write_runs(path, starts, hours, space, levels, fields):
    with netCDF4.Dataset(path, "w") as file:
        file.institution = MADE_UP
        _axes(file, *space)
        axes = {
            "forecast_period": hours,
            "forecast_reference_time": [(one - datetime(1970, 1, 1)).total_seconds() for one in starts],
        }
        for name, values in axes.items():
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,))[:] = values
        file["forecast_period"].units = "hours"
        file["forecast_reference_time"].units = "seconds since 1970-01-01"
        extra = ()
        if levels:
            file.createDimension(levels[0], len(levels[1]))
            file.createVariable(levels[0], "f8", (levels[0],))[:] = levels[1]
            file[levels[0]].units, extra = levels[2], (levels[0],)
        valid = file.createVariable("valid_time", "i8", ("forecast_reference_time", "forecast_period"))
        valid.units = "seconds since 1970-01-01"
        valid[:] = np.array(axes["forecast_reference_time"])[:, None] + 3600 * np.array(hours)
        for name, (unit, values) in fields.items():
            dimensions = ("forecast_period", "forecast_reference_time", *extra, "latitude", "longitude")
            variable = file.createVariable(name, "f8", dimensions)
            variable.units = unit
            variable[:] = values
