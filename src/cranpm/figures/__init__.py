"""Pictures: maps and the paper's figures from our own products, in one style."""

from cranpm.figures.maps import check_picture, data_label, draw, draw_archive, draw_coast, extent, pm25_layer

__all__ = ["check_picture", "data_label", "draw", "draw_archive", "draw_coast", "extent", "pm25_layer"]
