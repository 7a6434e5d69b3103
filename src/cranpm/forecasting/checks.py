"""What a forecast refuses: inputs that are missing or do not fit the weights, and fields that nobody should publish."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from cranpm.archive.day_data import PM25_CEILING_UGM3, Quality
from cranpm.archive.store import SIMULATION, Archive
from cranpm.core.days import check_reference
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.forecasting.forecast import Forecast
from cranpm.training.days_ahead import PERFECT

if TYPE_CHECKING:
    from cranpm.training.days_ahead import AheadFields
    from cranpm.weights import Card

DRIFT = 4.0
"""Without a climatology, the mean of a forecast may be this many times today's, or this part of it."""
BEYOND = 1.5
"""With one, it may rise and fall so many times as far as the domain's mean ever did in the training days."""
SLACK_UGM3 = 5.0


def replacements(
    archive: Archive, day: date, card: "Card | None", degrade: bool
) -> tuple[dict[date, date], tuple[str, ...]]:
    """By missing day the day that is used instead, and all faults in words; faults are refused without `degrade`."""
    if day not in archive.days:
        raise CranpmError(
            expected=f"{day} in the archive",
            found=f"days {archive.days[0]}..{archive.days[-1]}, without it" if archive.days else "no day",
            remedy="Simulate or ingest that day.",
        )
    instead, yesterday = {}, day - timedelta(days=1)
    faults = [f"{day} is stored as degraded"] * (archive.quality(day) == Quality.DEGRADED)
    if card is not None:
        faults += _foreign(archive, card)
        if yesterday not in archive.days:
            instead[yesterday] = day
            faults.append(f"{yesterday} is missing: {day} is used instead")
        elif archive.quality(yesterday) == Quality.DEGRADED:
            faults.append(f"{yesterday} is stored as degraded")
    if faults and not degrade:
        refuse_inputs("; ".join(faults))
    return instead, tuple(faults)


def days_ahead(ahead: "AheadFields", day: date, leads: Sequence[int], card: "Card") -> tuple[list[str], dict[str, str]]:
    """What is wrong with the forecasts of the days ahead, in words, and by group which run was read.

    A group that is missing for a lead is masked: the weights were trained to do without.
    """
    faults: list[str] = []
    runs: dict[str, str] = {}
    for group in ahead.form.groups:
        missing = [lead for lead in leads if not ahead.knows(day, lead, group)]
        if missing:
            of_leads = ", ".join(f"T+{lead}" for lead in missing)
            faults.append(f"no forecast of the {group} ahead for {of_leads}: the weights do without")
        if len(missing) == len(leads):
            runs[group] = "none"
            continue
        run = ahead.archive.ahead.run(day, group)
        if ahead.prognosis == "perfect" or run is None:
            runs[group] = PERFECT
            continue
        runs[group] = str(run) + (f", not for {', '.join(f'T+{lead}' for lead in missing)}" if missing else "")
        check_reference(day, run.reference, run.model)
        if run.reference.date() < day:
            faults.append(f"the {group} ahead is from an older run: {run}")
        if card.ahead.get(group) and run.model not in card.ahead[group]:
            known = ", ".join(card.ahead[group])
            faults.append(f"the {group} ahead is from {run.model}, the weights learned from {known}")
    if PERFECT in runs.values():
        faults.append(f"not a forecast: {PERFECT}")
    return faults, runs


def _foreign(archive: Archive, card: "Card") -> list[str]:
    """What the weights were trained on that the archive is not."""
    faults = []
    if card.source == SIMULATION and SIMULATION not in archive.source:
        faults.append(f"the weights were trained on simulated days, the archive's come from {archive.source}")
    if card.domain not in (None, str(archive.domain)):
        faults.append(f"the weights were trained on {card.domain}, the archive is {archive.domain}")
    return faults


def refuse_inputs(found: str) -> NoReturn:
    """Refuse faults of the inputs that were not accepted."""
    raise CranpmError(
        expected="sound inputs",
        found=found,
        remedy="Complete the archive, or add --degrade: the product is then labelled as degraded.",
    )


def check(forecast: Forecast, today_ugm3: Array, changes: Mapping[int, tuple[float, float]]) -> None:
    """Refuse a field that must not be published: holes on land, impossible values, a mean that ran away.

    `changes` is the weights' climatology of the mean of their whole domain (see `Card`), give or take 5 ug m-3, but
    never down to less than half of the lowest; a region has none.
    """
    present = np.isfinite(today_ugm3)
    before = float(today_ugm3[present].mean()) if present.any() else 0.0
    for lead in forecast.leads:
        field = forecast.of(lead)
        holes = int((~np.isfinite(field) & present).sum())
        if holes:
            _refuse(f"a value at T+{lead} wherever today has one", f"{holes} pixels without")
        if not present.any():
            _refuse(f"PM2.5 somewhere on {forecast.day}", "none")
        top, mean = float(np.nanmax(field)), float(field[present].mean())
        if top > PM25_CEILING_UGM3:
            _refuse(f"PM2.5 at T+{lead} up to {PM25_CEILING_UGM3:g} ug m-3", f"{top:.0f}")
        fall, rise = changes.get(lead, (1 / DRIFT, DRIFT))
        if lead in changes:
            fall, rise = min(fall, 1.0) / BEYOND, max(rise, 1.0) * BEYOND
        low, high = before * fall - min(SLACK_UGM3, before * fall / 2), before * rise + SLACK_UGM3
        if not low <= mean <= high:
            _refuse(f"a mean at T+{lead} of {low:.1f} to {high:.1f} ug m-3, from today's {before:.1f}", f"{mean:.1f}")


def _refuse(expected: str, found: str) -> NoReturn:
    raise CranpmError(
        expected=expected, found=found, remedy="Nothing was published. Check the inputs, and the weights' model card."
    )
