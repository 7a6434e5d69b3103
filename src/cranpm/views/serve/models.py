"""The answers of the API, as its OpenAPI document describes them; those of points and boxes are publication's."""

from datetime import date, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field


class Refusal(BaseModel):
    """Expected, found, remedy in one sentence."""

    detail: str


class Health(BaseModel):
    """Whether there is a map, and a recent one."""

    status: Literal["ok", "stale", "damaged", "empty", "unwatched"]
    reason: str = Field(description="Why it fails; empty if it does not.")
    newest: date | None
    age_hours: float | None
    stale_after_hours: float
    left_out: dict[str, str] = Field(description="Forecasts in the folder that cannot be shown, and why.")


class Lead(BaseModel):
    lead: int
    valid: date
    variables: list[str] = Field(description="What tiles can show of this lead.")


class RunFacts(BaseModel):
    """A published forecast."""

    id: date = Field(description="Its start day.")
    version: str = Field(description="Changes when the day is published again.")
    made: datetime
    age_hours: float
    stale: bool
    stale_reason: str
    method: str
    simulated: bool
    degraded: list[str]
    checked: bool = Field(description="Whether the files were compared with their checksums; old products have none.")
    bounds: tuple[float, float, float, float] = Field(description="West, south, east, north in degrees.")
    leads: list[Lead]


class ArchiveFacts(BaseModel):
    source: str
    simulated: bool


class Runs(BaseModel):
    runs: list[RunFacts]
    archive: ArchiveFacts | None = Field(description="What history, stations, change, truth and error come from.")
    style: str = Field(description="Changes with the colours of the tiles; for ?style= behind their paths.")
    now: datetime


class DayValue(BaseModel):
    day: date
    pm25: float | None


class StationHistory(BaseModel):
    id: str
    type: str
    area: str
    lat: float
    lon: float
    distance_km: float
    days: list[DayValue]


class History(BaseModel):
    days: list[DayValue]
    stations: list[StationHistory]


class StationMap(BaseModel):
    """GeoJSON."""

    type: Literal["FeatureCollection"]
    features: list[dict[str, Any]]
