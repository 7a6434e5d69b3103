"""Geometry, units, dates, settings, files and parallel work: what every room uses."""
