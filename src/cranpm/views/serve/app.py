"""The read-only API and the page: every answer is read from one published run, or is refused."""

import gzip
import mimetypes
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Depends, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from rasterio.errors import RasterioIOError

from cranpm import __version__
from cranpm.core.errors import CranpmError
from cranpm.forecasting.publication import AbsentError, DamagedError, Run, points
from cranpm.forecasting.publication.names import DAY, VERSION
from cranpm.views.serve import models, nearby, tiles
from cranpm.views.serve.middleware import FOR_EVER, finish
from cranpm.views.serve.service import Service

THREADS = 8
REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"model": models.Refusal, "description": "Not there, or no longer there."},
    503: {"model": models.Refusal, "description": "Too many requests, or files that are damaged or cannot be read."},
}
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}, "description": "256 x 256 pixels."}}
Latitude = Annotated[float, Query(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Query(ge=-180, le=180, allow_inf_nan=False)]
RunDay = Annotated[str, InPath(pattern=DAY, description="Start day.")]
RunVersion = Annotated[str, InPath(pattern=VERSION)]


def create_app(
    folder: Path, archive: str | None = None, stale_after_hours: float = 36.0, origins: tuple[str, ...] = ()
) -> FastAPI:
    """The web application for a folder of products. Other sites may read it only if `origins` names them."""
    service = Service(folder, archive, stale_after_hours)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        service.watch.start()
        yield
        service.close()

    app = FastAPI(
        title="cranpm",
        version=__version__,
        description="PM2.5 at 1 km: published forecasts, read-only.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    app.middleware("http")(finish)
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET"])
    app.state.service = service
    _refuse_well(app)
    _all_runs(app, service)
    _one_run(app, service)
    _page(app)
    return app


def _refuse_well(app: FastAPI) -> None:
    """Faults become one sentence with the right status; a traceback never leaves the server."""

    @app.exception_handler(CranpmError)
    async def refused(request: Any, error: CranpmError) -> JSONResponse:
        status = 404 if isinstance(error, AbsentError) else 503
        return JSONResponse({"detail": str(error)}, status, {"Retry-After": "2"} if status == 503 else None)

    @app.exception_handler(RasterioIOError)
    @app.exception_handler(FileNotFoundError)
    async def vanished(request: Any, error: Exception) -> JSONResponse:
        detail = "expected the files of this run; found them replaced or unreadable. Load /api/runs again."
        return JSONResponse({"detail": detail}, 503, {"Retry-After": "2"})


def _all_runs(app: FastAPI, service: Service) -> None:
    """Routes about the whole folder."""

    @app.get("/api/health", responses={503: {"model": models.Health, "description": "See its status."}})
    def health(response: Response) -> models.Health:
        """Fails when there is no forecast, the newest one is damaged or too old, or checksums are not compared."""
        runs, left_out = service.publication.runs("tif")
        newest = runs[0] if runs else None
        status, reason = _health(newest, left_out, service.stale_after_hours)
        if not reason and service.watch.failed:
            status, reason = "unwatched", "checksums are no longer compared in the background: start the server again"
        response.status_code = 503 if reason else 200
        return models.Health(
            status=status,
            reason=reason,
            newest=newest and newest.day,
            age_hours=newest and round(newest.age_hours, 2),
            stale_after_hours=service.stale_after_hours,
            left_out={str(day): str(error) for day, error in left_out.items()},
        )

    @app.get("/api/runs")
    def runs() -> models.Runs:
        """Published forecasts, newest start day first."""
        found, view = service.publication.runs("tif")[0], service.view()
        archive = view and {"source": view.archive.source, "simulated": view.simulated}
        shared = {"archive": archive, "style": tiles.style(), "now": datetime.now(UTC)}
        return models.Runs.model_validate({"runs": [service.facts(run, view) for run in found]} | shared)

    @app.get("/api/legend")
    def legend() -> dict[str, dict[str, Any]]:
        """The colours of the tiles."""
        return {variable: tiles.legend(variable) for variable in tiles.STYLES}

    @app.get("/api/places")
    def towns() -> list[points.Town]:
        """The largest towns on the newest run's map."""
        found, _ = service.publication.runs("tif")
        return _towns(found[0].grid) if found else []


def _health(
    newest: Run | None, left_out: Mapping[date, CranpmError], stale_after_hours: float
) -> tuple[Literal["ok", "stale", "damaged", "empty", "unwatched"], str]:
    """The status, and why it fails; empty if it does not."""
    damaged = [day for day, error in left_out.items() if isinstance(error, DamagedError)]
    if damaged and (newest is None or max(damaged) > newest.day):
        return "damaged", f"the forecast from {max(damaged)} is damaged: {left_out[max(damaged)]}"
    if newest is None:
        return "empty", "there is no forecast"
    reason = newest.stale_reason(stale_after_hours)
    return "stale" if reason else "ok", reason


def _one_run(app: FastAPI, service: Service) -> None:
    """Routes about one version of one run."""

    def chosen(day: RunDay, version: RunVersion) -> Run:
        return service.publication.find(day, version)

    chosen_run = Annotated[Run, Depends(chosen)]
    below = "/api/runs/{day}/{version}"

    @app.get(below + "/tiles/{variable}/{lead}/{z}/{x}/{y}.png", responses=REFUSALS | PNG, response_class=Response)
    async def tile(
        run: chosen_run,
        variable: str,
        lead: Annotated[int, InPath(ge=1)],
        z: Annotated[int, InPath(ge=0, le=tiles.ZOOMS)],
        x: Annotated[int, InPath(ge=0, lt=2**tiles.ZOOMS)],
        y: Annotated[int, InPath(ge=0, lt=2**tiles.ZOOMS)],
    ) -> Response:
        """A map tile (web mercator), transparent where there is no value."""
        if max(x, y) >= 2**z:
            raise AbsentError(
                expected=f"x and y below {2**z} at zoom {z}", found=f"{x}, {y}", remedy="Ask for a tile of the map."
            )
        raster = await service.raster(run, variable, lead)
        lasting = {"cache-control": FOR_EVER} if raster == run.raster(lead) else {}
        body = await anyio.to_thread.run_sync(tiles.tile, variable, raster, z, x, y)
        return Response(body, media_type="image/png", headers=lasting)

    @app.get(below + "/point", responses=REFUSALS)
    def point(run: chosen_run, lat: Latitude, lon: Longitude) -> points.Point:
        """The forecast for the pixel that holds a point."""
        return points.point(run, lat, lon)

    @app.get(below + "/history", responses=REFUSALS)
    async def history(run: chosen_run, lat: Latitude, lon: Longitude) -> models.History:
        """PM2.5 at a pixel and at stations near it, before and after the start day."""
        found = await service.heavy(nearby.history, run, service.need_view(), lat, lon)
        return models.History.model_validate(found)

    @app.get(below + "/box", responses=REFUSALS)
    async def box(run: chosen_run, north: Latitude, west: Longitude, south: Latitude, east: Longitude) -> points.Box:
        """Statistics of the land in a box, weighted by area."""
        return await service.heavy(_box, run, north, west, south, east)

    @app.get(below + "/stations/{lead}", responses=REFUSALS)
    async def stations(run: chosen_run, lead: Annotated[int, InPath(ge=0)]) -> models.StationMap:
        """Stations as GeoJSON: observed on the valid day, forecast there; lead 0 is the start day."""
        found = await service.heavy(nearby.stations, run, service.need_view(), lead)
        return models.StationMap.model_validate(found)


_towns, _box = lru_cache(maxsize=8)(points.towns), lru_cache(maxsize=256)(points.box)


def _page(app: FastAPI) -> None:
    """The built page, from memory and compressed once: nothing but its own files can be requested."""
    root = Path(str(files("cranpm.views.serve") / "page"))
    built = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    small = {name: gzip.compress(body) for name, body in built.items()}

    @app.get("/", include_in_schema=False)
    @app.get("/{name:path}", include_in_schema=False)
    def asset(request: Request, name: str = "") -> Response:
        name = name or "index.html"
        if name == "index.html" and not built:
            missing = "The page is not built. In a clone of the project: make page. The API answers under /api."
            return Response(missing, 503, media_type="text/plain")
        if name not in built:
            raise AbsentError(expected="a file of the page", found=name[:80], remedy="Open /.")
        headers = {"cache-control": FOR_EVER} if name.startswith("assets/") else {}
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        headers |= {"content-encoding": "gzip"} if zipped else {}
        return Response((small if zipped else built)[name], media_type=mimetypes.guess_type(name)[0], headers=headers)
