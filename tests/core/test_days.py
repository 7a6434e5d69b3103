from datetime import date

import pytest

from cranpm.core.days import (
    PAPER_SPLITS,
    DayRange,
    Splits,
    check_leakage,
    gaps,
    needed,
    parse_day,
    parse_days,
    parse_leads,
    reach,
    usable,
)
from cranpm.core.errors import CranpmError


def test_ranges_cross_leap_days_and_year_ends():
    days = list(parse_days("2020-02-28..2020-03-01"))
    assert days == [date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1)]
    assert len(parse_days("2020")) == 366
    assert len(parse_days("2021")) == 365
    assert parse_days("2021-05-05") == DayRange(date(2021, 5, 5), date(2021, 5, 5))
    assert date(2021, 1, 1) in parse_days("2020-12-31..2021-01-01")


def test_reach_of_new_years_eve():
    assert str(reach(date(2021, 1, 1))) == "2020-12-31..2021-01-04"
    assert str(reach(date(2020, 12, 31), leads=(1,))) == "2020-12-30..2021-01-01"


def test_gaps_are_listed():
    present = [date(2021, 1, 1), date(2021, 1, 2), date(2021, 1, 5), date(2021, 1, 7)]
    assert [str(gap) for gap in gaps(present)] == ["2021-01-03..2021-01-04", "2021-01-06..2021-01-06"]
    assert gaps([]) == []


def test_usable_days_keep_their_whole_reach_inside():
    within = parse_days("2021-01-01..2021-01-10")
    present = [day for day in parse_days("2020-12-20..2021-01-20") if day != date(2021, 1, 4)]
    # 1 January lacks its yesterday inside the range; 2 and 3 touch the gap; 8..10 reach beyond the end.
    assert usable(present, within) == [date(2021, 1, 6), date(2021, 1, 7)]


def test_paper_splits_cannot_leak():
    ranges = (PAPER_SPLITS.train, PAPER_SPLITS.validation)
    learned, scored = (usable(list(parse_days("2017-01-01..2022-12-31")), split) for split in ranges)
    check_leakage(learned, scored)
    assert max(learned) == date(2020, 12, 28)
    with pytest.raises(CranpmError, match="2 shared days, the first 2020-12-31"):
        check_leakage([*learned, date(2020, 12, 29)], [date(2021, 1, 1)])


def test_overlapping_splits_are_refused():
    with pytest.raises(CranpmError, match="train and test days that do not overlap"):
        Splits(train=parse_days("2017-01-01..2021-06-30"), validation=parse_days("2022"), test=parse_days("2021"))


def test_bad_days():
    with pytest.raises(CranpmError, match=r"Write 2021-01-01\.\.2021-01-09"):
        parse_days("2021-01-09..2021-01-01")
    for text in ("2021-02-29", "yesterday", "20210101", ""):
        with pytest.raises(CranpmError, match="YYYY-MM-DD"):
            parse_day(text)


def test_what_is_needed_depends_on_the_leads():
    range_of_days = DayRange(date(2022, 1, 10), date(2022, 1, 21))
    wanted = needed(range_of_days, 8, (1, 5))
    assert wanted == list(parse_days("2022-01-09..2022-01-15")) + list(parse_days("2022-01-17..2022-01-23"))
    assert needed(range_of_days, 8, (1,)) == [date(2022, 1, day) for day in (9, 10, 11, 17, 18, 19)]


@pytest.mark.parametrize("text", ["31", "1,400", "0", "-1", "1,1", "1;2", "1.5", "", "1,", "٣", "9" * 5000])
def test_absurd_leads_are_refused(text):
    with pytest.raises(CranpmError, match="leads in days from 1 to 30, each once"):
        parse_leads(text)
    assert parse_leads("1, 30") == (1, 30)
