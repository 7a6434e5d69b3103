"""The report of a forecast: what is expected, where, how far it can be trusted, and what it was made from."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from cranpm.archive.store import Archive
from cranpm.core.regions import inside, part_of, regions
from cranpm.forecasting.publication import Run, points
from cranpm.verification.methods import Product
from cranpm.verification.tally import Tally
from cranpm.views.figures.catalogue import draw_figure
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.figures.style import EXCEEDANCE, UNIT
from cranpm.views.report.parts import Badge, Picture, Report, Section, Table

TOWNS = 15
DPI = 110


def forecast_report(run: Run, archive: Archive | None) -> Report:
    """The report of one run; with an archive also the errors, where it has the valid days."""
    sections = [_glance(run), _maps(run), _regions(run), _towns(run)]
    if archive is not None:
        sections.append(_outcome(run, archive))
    sections += [_trust(run), _origin(run)]
    first, last = (_long(run.valid(lead)) for lead in (run.leads[0], run.leads[-1]))
    lead = f"Daily mean PM2.5 at 1 km for {first} to {last}, by {run.method}."
    return Report(f"PM2.5 forecast from {_long(run.day)}", lead, _badges(run), [part for part in sections if part])


def _badges(run: Run) -> list[Badge]:
    simulated = [Badge("Simulated data: not a real observation", True)] * run.simulated
    degraded = [Badge("Degraded input", True)] * bool(run.degraded)
    unchecked = [Badge("Published without checksums", True)] * (not run.checked)
    made = [Badge(f"made {run.made:%Y-%m-%d %H:%M} UTC"), Badge(f"version {run.version}")]
    return [*simulated, *degraded, *unchecked, *made]


def _long(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B %Y}"


def _box(run: Run, box: tuple[float, float, float, float]) -> Sequence[points.BoxLead]:
    return points.box(run, *box).leads


def _figure(value: object, digits: int = 1) -> str:
    return "–" if value is None else f"{float(str(value)):.{digits}f}"


def _glance(run: Run) -> Section:
    grid, rows = run.grid, []
    for found in _box(run, (grid.north, grid.west, grid.south, grid.east)):
        above = [f"{100 * (part.share or 0):.1f} %" for part in found.above]
        figures = [_figure(value) for value in (found.mean, found.median, found.p90, found.high)]
        rows.append((f"T+{found.lead} · {found.valid}", *figures, *above))
    header = ("", "mean", "median", "90 % are below", "highest", *(f"land above {t:g}" for t in EXCEEDANCE.edges))
    return Section(
        "At a glance", tables=[Table(rows, header, notes=[f"In {UNIT}, weighted by area. {EXCEEDANCE.note}."])]
    )


def _maps(run: Run) -> Section:
    pictures, lacking = [], []
    for lead in run.leads:
        path = run.picture(lead)
        if path is not None:
            alt = f"Map of PM2.5 forecast for {run.valid(lead)}; the tables give its figures."
            pictures.append(Picture.of(path, alt, f"T+{lead}: {_long(run.valid(lead))}"))
        else:
            lacking.append(f"T+{lead} has no picture: the forecast was made without --format png.")
    return Section("Maps", points=lacking, pictures=pictures)


def _regions(run: Run) -> Section | None:
    named = {name: box for name, box in regions().items() if inside(box, run.grid)}
    if not named:
        return None
    found = {name: _box(run, box) for name, box in named.items()}
    rows = [(name, *(f"{_figure(x.mean)} ({_figure(x.p90)})" for x in leads)) for name, leads in found.items()]
    header = ("", *(f"T+{lead} · {run.valid(lead)}" for lead in run.leads))
    return Section("Regions", tables=[Table(rows, header, notes=[f"Mean (and 90th percentile) of the land, {UNIT}."])])


def _towns(run: Run) -> Section | None:
    rows = []
    for town in points.towns(run.grid)[: 4 * TOWNS]:
        leads = points.point(run, town.lat, town.lon).forecast
        if all(lead.pm25 is not None for lead in leads):
            rows.append((town.name, *(f"{lead.pm25:.1f} · {lead.index}" for lead in leads)))
    if not rows:
        return None
    header = ("", *(f"T+{lead} · {run.valid(lead)}" for lead in run.leads))
    note = f"The pixel of 1 km in the middle of the town, {UNIT}, and its category of the air quality index; towns "
    note += "whose pixel has no value are left out."
    return Section("Largest towns", tables=[Table(rows[:TOWNS], header, notes=[note])])


def _outcome(run: Run, archive: Archive) -> Section:
    """Errors relative to the archive's field of the valid day, and those of persistence, weighted by area."""
    days, title = set(archive.days), "How it turned out"
    known, window = [lead for lead in run.leads if run.valid(lead) in days], part_of(run.grid, archive.domain.fine)
    if not known or run.day not in days or window is None:
        lacking = "its grid" if window is None else "its start day" if run.day not in days else "any of its valid days"
        return Section(title, [f"The archive does not hold {lacking}."])
    grid, today, rows = run.grid, archive.pm25(run.day, window), []
    for lead in known:
        truth = archive.pm25(run.valid(lead), window)
        own, same = (Tally.of(field, truth, grid.row_area_km2[:, None]) for field in (run.pm25(lead), today))
        gain = f"{100 * (1 - float(own.rmse) / float(same.rmse)):+.1f} %" if same.rmse > 0 else "–"
        rows.append((f"T+{lead} · {run.valid(lead)}", *(_figure(x, 2) for x in (own.rmse, own.bias, same.rmse)), gain))
    header = ("", "RMSE", "bias", "RMSE of persistence", "skill")
    notes = [f"{UNIT}, all land at 1 km, against the archive's field of the day ({archive.source})."]
    return Section(title, tables=[Table(rows, header, notes=notes)], pictures=_comparison(run, archive, known[0]))


def _comparison(run: Run, archive: Archive, lead: int) -> list[Picture]:
    """The figure of truth, forecast and error, of products that cover the archive's domain."""
    if run.grid != archive.domain.fine:
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "maps.png"
        given = FigureInputs(archive, (Product(run.method, run, run.grid),), day=run.day, lead=lead)
        draw_figure("maps", given, path, DPI)
        caption = f"What was observed on {_long(run.valid(lead))}, what was forecast, and the error."
        return [Picture.of(path, caption, caption)]


def _trust(run: Run) -> Section:
    if run.degraded:
        return Section("Degraded input", ["Inputs were missing and were replaced:"], run.degraded)
    return Section("Degraded input", ["Nothing was missing, and nothing was replaced."])


def _origin(run: Run) -> Section:
    rows = [(name.replace("_", " "), str(value)) for name, value in sorted(run.provenance.items()) if value is not None]
    return Section("Where it comes from", tables=[Table(rows, facts=True)])
