"""What the archive has near a point of a run: the days before and after, and stations."""

import math
from datetime import date, timedelta
from typing import Any

import numpy as np

from cranpm.core.grid import EARTH_RADIUS_KM, Array
from cranpm.forecasting.publication.points import number, pixel, sampled
from cranpm.forecasting.publication.run import Run
from cranpm.views.serve.archive_view import ArchiveView

HISTORY_DAYS = 13
NEAR_KM, NEAREST = 50.0, 3


def history(run: Run, view: ArchiveView, lat: float, lon: float) -> dict[str, Any]:
    """The archive's PM2.5 at a pixel and at stations near it, from two weeks before the start to the last lead."""
    pixel(run.grid, lat, lon)
    archive = view.archive
    row, col = pixel(archive.domain.fine, lat, lon)
    last = run.day + timedelta(days=max(run.leads))
    span = [last - timedelta(days=n) for n in range((last - run.day).days + HISTORY_DAYS, -1, -1)]
    days = [day for day in span if day in view.days]
    window = (slice(row, row + 1), slice(col, col + 1))
    fields = [{"day": day, "pm25": number(archive.pm25(day, window)[0, 0])} for day in days]
    return {"days": fields, "stations": _stations_near(view, days, lat, lon)}


def _stations_near(view: ArchiveView, days: list[date], lat: float, lon: float) -> list[dict[str, Any]]:
    stations = view.archive.stations
    if not len(stations):
        return []
    away = distance_km(lat, lon, stations.lat, stations.lon)
    nearest = [index for index in np.argsort(away)[:NEAREST] if away[index] <= NEAR_KM]
    values = [view.stations_pm25(day) for day in days]
    return [
        {
            **_station(stations, index),
            "lat": float(stations.lat[index]),
            "lon": float(stations.lon[index]),
            "distance_km": round(float(away[index]), 1),
            "days": [{"day": d, "pm25": number(v[index])} for d, v in zip(days, values, strict=True)],
        }
        for index in nearest
    ]


def _station(stations: Any, index: int) -> dict[str, str]:
    return {"id": str(stations.ids[index]), "type": str(stations.kind[index]), "area": str(stations.area[index])}


def distance_km(lat: float, lon: float, lats: Array, lons: Array) -> Array:
    """Along great circles (haversine)."""
    a, b = math.radians(lat), np.radians(lats)
    half = np.sin((b - a) / 2) ** 2 + math.cos(a) * np.cos(b) * np.sin(np.radians(lons - lon) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(half))


def stations(run: Run, view: ArchiveView, lead: int) -> dict[str, Any]:
    """GeoJSON of the stations on the run's grid: observed on the valid day, forecast there, and the difference."""
    if lead:
        run.check_lead(lead)
    every = view.archive.stations
    inside = np.flatnonzero(run.grid.contains(every.lat, every.lon)) if len(every) else np.array([], int)
    valid = run.valid(lead)
    observed = view.stations_pm25(valid) if valid in view.days else np.full(len(every), np.nan)
    forecast = sampled(run, lead, every.lat[inside], every.lon[inside]) if lead else np.full(len(inside), np.nan)
    features = []
    for index, value in zip(inside, forecast, strict=True):
        difference = number(value - observed[index])
        figures = {"observed": number(observed[index]), "forecast": number(value), "difference": difference}
        place = {"type": "Point", "coordinates": [float(every.lon[index]), float(every.lat[index])]}
        features.append({"type": "Feature", "geometry": place, "properties": {**_station(every, index), **figures}})
    return {"type": "FeatureCollection", "features": features}
