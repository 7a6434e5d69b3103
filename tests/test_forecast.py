from datetime import timedelta

import numpy as np
import pytest

from cranpm.baselines.persistence import persistence
from cranpm.errors import CranpmError
from cranpm.forecast import draw_forecast, parse_leads


def test_persistence_is_today_for_every_lead(archive):
    day = archive.days[1]
    forecast = persistence(archive, day, (1, 3))
    assert list(forecast) == [1, 3]
    for field in forecast.values():
        assert np.array_equal(field, archive.pm25(day), equal_nan=True)


def test_maps_and_errors(archive, tmp_path):
    day = archive.days[2]
    results = draw_forecast(archive, day, (1, 2, 3), tmp_path)
    assert [result.valid for result in results] == [day + timedelta(days=lead) for lead in (1, 2, 3)]
    truth, today = archive.pm25(day + timedelta(days=1)), archive.pm25(day)
    assert results[0].rmse_ugm3 == pytest.approx(float(np.sqrt(np.nanmean((truth - today) ** 2))))
    assert results[0].rmse_ugm3 > 0.5
    assert results[2].rmse_ugm3 is None
    assert all(result.path.stat().st_size > 50_000 for result in results)


def test_leads():
    assert parse_leads("3,1") == (3, 1)
    for text in ("0", "4", "-5", "1,1", "one", ""):
        with pytest.raises(CranpmError, match="leads among"):
            parse_leads(text)
