"""The bands of the index, by hand."""

import pytest

from cranpm.core.air_quality import INDEX_EDGES_UGM3, INDEX_NAMES, index_name


@pytest.mark.parametrize(
    ("value", "name"), [(0.0, "good"), (10.0, "good"), (10.1, "fair"), (25.1, "poor"), (75.1, "extremely poor")]
)
def test_an_edge_belongs_to_the_band_below_it(value, name):
    assert index_name(value) == name


def test_a_missing_value_has_no_band():
    assert index_name(None) is None
    assert len(INDEX_NAMES) == len(INDEX_EDGES_UGM3) + 1
