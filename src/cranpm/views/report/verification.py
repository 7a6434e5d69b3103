"""The report of a verification: figures first, then every table."""

from pathlib import Path
from tempfile import TemporaryDirectory

from cranpm.archive.store import SIMULATION
from cranpm.core.errors import CranpmError
from cranpm.verification.scores_file import ScoresFile, read_scores
from cranpm.views.figures.catalogue import FIGURES, draw_figure
from cranpm.views.figures.inputs import FigureInputs
from cranpm.views.report.parts import Badge, Picture, Report, Section, Table

DPI = 110
DRAWN = ("leads", "regions", "reliability", "spectra", "target")


def verification_report(folder: Path) -> Report:
    scores = read_scores(folder)
    days, source = scores.days, scores.archive.source
    pictures, lacking = _pictures(folder)
    left_out = [f"{day}: {reason}" for day, reason in scores.left_out.items()]
    sections = [
        Section("Figures", points=lacking, pictures=pictures),
        Section("Tables", tables=_tables(folder)),
        Section("Days left out", [] if left_out else ["None: every method has every day."], left_out),
        Section("Where it comes from", tables=[Table(_facts(scores), facts=True)]),
    ]
    badges = [Badge("Simulated data: not a real observation", True)] * (SIMULATION in source)
    badges += [Badge(f"{days.count} start days"), Badge(f"{days.first} to {days.last}")]
    lead = f"{', '.join(scores.methods)}, verified on the same days and pixels."
    return Report("Verification of PM2.5 forecasts", lead, badges, sections)


def _pictures(folder: Path) -> tuple[list[Picture], list[str]]:
    """What can be drawn, and what cannot with the reason."""
    found, lacking, inputs = [], [], FigureInputs(verified=folder)
    with TemporaryDirectory() as drawn:
        for name in (*DRAWN, *(["transfer"] * (folder / "means.nc").exists())):
            path = Path(drawn) / f"{name}.png"
            try:
                draw_figure(name, inputs, path, DPI)
            except CranpmError as error:
                lacking.append(f"{name}: not drawn. {error}")
                continue
            shows = FIGURES[name].shows
            found.append(Picture.of(path, shows, f"{shows[0].upper()}{shows[1:]}."))
    return found, lacking


def _tables(folder: Path) -> list[Table]:
    """The tables of tables.md, with their titles and notes; the CSV has the cells."""
    tables = []
    for text in (folder / "tables.md").read_text().split("### ")[1:]:
        lines = [line.strip().replace("\\*", "*") for line in text.splitlines()]
        cells = [line.strip("|").split("|") for line in lines if line.startswith("|")]
        notes = [line for line in lines[1:] if line and not line.startswith("|")]
        header, _, *rows = ([cell.strip() for cell in row] for row in cells)
        tables.append(Table(rows, header, lines[0], notes))
    return tables


def _facts(scores: ScoresFile) -> list[tuple[str, str]]:
    methods = {name: method.facts for name, method in scores.methods.items()}
    return [
        *((f"archive {name}", str(value)) for name, value in scores.archive),
        *((name, ", ".join(f"{k} {v}" for k, v in facts.items())) for name, facts in methods.items()),
    ]
