"""What agencies compare daily means of PM2.5 with: thresholds and the bands of the air quality index."""

import numpy as np

THRESHOLDS_UGM3 = (15.0, 25.0, 50.0)
"""Daily means that agencies report on: WHO's guideline of 2021, and the EU's limit from 2030 and twice that."""
INDEX_EDGES_UGM3 = (10.0, 20.0, 25.0, 50.0, 75.0)
"""Bands of the European Air Quality Index for PM2.5 in its six classes until 2024, here used on daily means."""
INDEX_NAMES = ("good", "fair", "moderate", "poor", "very poor", "extremely poor")


def index_name(pm25_ugm3: float | None) -> str | None:
    """The band of the index that holds a daily mean (ug m-3); an edge belongs to the band below it."""
    return None if pm25_ugm3 is None else INDEX_NAMES[int(np.searchsorted(INDEX_EDGES_UGM3, pm25_ugm3))]
