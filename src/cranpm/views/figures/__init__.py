"""Pictures: maps and the paper's figures from our own products, in one style."""

from cranpm.views.figures.maps import data_label, draw, draw_archive, draw_coast, extent, pm25_layer
from cranpm.views.figures.sheet import check_picture

__all__ = ["check_picture", "data_label", "draw", "draw_archive", "draw_coast", "extent", "pm25_layer"]
