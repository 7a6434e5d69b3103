"""How products and their folders are called: no other module knows.

`FOLDER/DAY` is a symbolic link to `FOLDER/.DAY.VERSION`, which holds the files of one version and never changes.
"""

import re
from datetime import date
from pathlib import Path

from cranpm.core.files import SUMS

DAY, VERSION = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", r"^[0-9a-f]{8}$"
_HIDDEN = re.compile(r"\.([0-9]{4}-[0-9]{2}-[0-9]{2})\.([0-9a-f]{8})")
_LINK = re.compile(r"\.([0-9]{4}-[0-9]{2}-[0-9]{2})\.[0-9a-f]{8}\.link")
_SUMS = re.compile(rf"{SUMS}|\.{SUMS}\.[0-9a-f]{{8}}")
Day = date | str


def is_day(name: str) -> bool:
    """Whether a name is a day, YYYY-MM-DD."""
    try:
        return re.fullmatch(DAY[1:-1], name) is not None and bool(date.fromisoformat(name))
    except ValueError:
        return False


def hidden(day: Day, version: str) -> str:
    """The folder of one version of a start day."""
    return f".{day}.{version}"


def version_of(name: str, day: Day) -> str | None:
    """The version that a folder of a day holds; None for a name that is not ours to the letter."""
    found = _HIDDEN.fullmatch(name)
    return found[2] if found and found[1] == str(day) else None


def is_unfinished_link(name: str, day: Day) -> bool:
    """Whether a link was about to become `DAY` when its writer was stopped."""
    found = _LINK.fullmatch(name)
    return found is not None and found[1] == str(day)


def stem(day: Day) -> str:
    """What the names of all files of a start day begin with."""
    return f"pm25_{day}"


def netcdf(day: Day) -> str:
    return f"{stem(day)}.nc"


def zarr(day: Day) -> str:
    return f"{stem(day)}.zarr"


def of_lead(day: Day, lead: int, ending: str) -> str:
    """A file of one lead: a GeoTIFF (tif) or a map (png)."""
    return f"{stem(day)}_T+{lead}.{ending}"


def leads_in(folder: Path, day: Day, ending: str) -> tuple[int, ...]:
    """Leads that have a file with this ending, ascending."""
    pattern = re.compile(rf"{re.escape(stem(day))}_T\+([1-9][0-9]*)\.{ending}")
    found = (pattern.fullmatch(path.name) for path in folder.iterdir())
    return tuple(sorted(int(match[1]) for match in found if match))


def is_product(name: str, day: Day) -> bool:
    """Whether an entry of a run's folder is one of ours: a file of the day, or checksums, also unfinished ones."""
    return name.startswith((f"{stem(day)}.", f"{stem(day)}_")) or _SUMS.fullmatch(name) is not None


def day_of_file(path: Path) -> str | None:
    """The start day in the name of a NetCDF file of ours; None for other names."""
    found = re.fullmatch(r"pm25_([0-9-]{10})\.nc", path.name)
    return found[1] if found and is_day(found[1]) else None
