"""Which report belongs to a folder, and the HTML file that it becomes."""

from pathlib import Path

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.core.files import write_whole
from cranpm.forecasting.publication import AbsentError, Run, find_product
from cranpm.views.report.forecast import forecast_report
from cranpm.views.report.parts import MOST_BYTES
from cranpm.views.report.verification import verification_report


def write_report(folder: Path, path: Path, archive: Archive | None = None) -> Path:
    """Write a report of a verification, of one forecast (`OUT/DAY`) or of the newest in a folder; return its path."""
    if (folder / "scores.json").is_file():
        report = verification_report(folder)
    else:
        report = forecast_report(_run(folder), archive)
    html = report.html().encode()
    if len(html) > MOST_BYTES:
        raise CranpmError(
            expected=f"a report below {MOST_BYTES / 1e6:g} MB",
            found=f"{len(html) / 1e6:.1f} MB",
            remedy="Report on fewer methods, or on a forecast with smaller maps.",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, html)
    return path


def _run(folder: Path) -> Run:
    try:
        if folder.is_dir():
            return find_product(folder)
        found = "no such folder"
    except AbsentError as error:
        found = error.found
    raise CranpmError(
        expected="what `cranpm verify` or `cranpm forecast` wrote",
        found=f"{folder}: {found}",
        remedy="Name their --out folder.",
    )
