"""Forecasts that need no learning: the archive alone, two of them fitted on training days."""
