"""Providers whose files are runs of a forecast model."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from cranpm.core.channels import CHANNELS
from cranpm.core.errors import CranpmError
from cranpm.core.grid import Array
from cranpm.providers.gridded import summary, variables
from cranpm.providers.provider import HOURS_A_DAY, PROVIDERS, DayReader, FileSummary, Provider, Reading, ReadQuery
from cranpm.providers.readers.files import Piece
from cranpm.providers.readers.variable import Variable


class ForecastProvider(Provider):
    """Runs of one model, known by what files say of themselves.

    A channel is read as the provider reads it whose form it has (`Channel.source`): wind as ERA5's, ozone as CAMS's.
    """

    role = "forecast"
    every: int
    """Hours between the steps of a run that are fetched."""

    def steps(self, leads: int) -> tuple[int, ...]:
        """Hours after 00 UTC that a start day and the days after it need, as far as the run goes."""
        return tuple(range(0, min(HOURS_A_DAY * (leads + 1), self.most) + 1, self.every))

    def owns(self, variable: Variable) -> bool:
        """Whether a variable is of this provider's runs."""
        return variable.model == self.model

    def recognise(self, piece: Piece) -> FileSummary | None:
        """Files of one model's runs alone."""
        found = [variable for variable in variables(piece) if variable.start is not None]
        mine = [variable for variable in found if self.owns(variable)]
        if mine and len(mine) < len(found):
            raise CranpmError(
                expected=f"runs of one model in {piece}",
                found=" and ".join(sorted({variable.model for variable in found})),
                remedy="Split the file by model.",
            )
        return summary(piece, self.name, mine) if mine else None

    def open(self, pieces: Sequence[Piece], query: ReadQuery) -> DayReader:
        """Days of one run, each channel by the reader of its form."""
        forms = sorted({CHANNELS[name].source for name in query.channels})
        readers = [PROVIDERS[form].open(pieces, _part(query, form)) for form in forms]

        def day_of(day: date) -> Reading:
            fields: dict[str, Array] = {}
            notes: list[str] = []
            facts: dict[str, Any] = {}
            for reading in (read(day) for read in readers):
                fields |= reading.fields
                notes += reading.notes
                facts = _joined(facts, reading.facts)
            return Reading(fields, tuple(notes), facts)

        return day_of


def _part(query: ReadQuery, form: str) -> ReadQuery:
    names = [name for name in query.channels if CHANNELS[name].source == form]
    return ReadQuery(query.days, query.domain, names, query.lenient, query.run)


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that are lists, put together."""
    return {key: sorted({*one.get(key, ()), *other.get(key, ())}) for key in {*one, *other}}
