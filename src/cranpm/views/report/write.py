"""Which report a folder asks for, and the file that it becomes."""

import re
from pathlib import Path

from cranpm.archive.store import Archive
from cranpm.core.errors import CranpmError
from cranpm.forecasting.publication.reader import DAY, current_run, list_runs
from cranpm.views.report.forecast import forecast_report
from cranpm.views.report.parts import MOST_BYTES
from cranpm.views.report.verification import verification_report


def write_report(folder: Path, path: Path, archive: Archive | None = None) -> Path:
    """Of a verification, of one forecast (`OUT/DAY`), or of the newest in a folder of them."""
    if (folder / "scores.json").is_file():
        report = verification_report(folder)
    elif re.match(DAY, folder.name) and folder.is_symlink():
        report = forecast_report(current_run(folder.parent, folder.name), archive)
    else:
        runs, left_out = list_runs(folder) if folder.is_dir() else ([], {})
        if not runs:
            raise CranpmError(
                expected="what `cranpm verify` or `cranpm forecast` wrote",
                found=f"{folder}: {'; '.join(left_out.values()) or 'neither'}",
                remedy="Name their --out folder.",
            )
        report = forecast_report(runs[0], archive)
    html = report.html().encode()
    if len(html) > MOST_BYTES:
        raise CranpmError(
            expected=f"a report below {MOST_BYTES / 1e6:g} MB",
            found=f"{len(html) / 1e6:.1f} MB",
            remedy="Report on fewer methods, or on a forecast with smaller maps.",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_bytes(html)
    unfinished.replace(path)
    return path
