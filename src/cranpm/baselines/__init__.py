"""The opponents: forecasts that a network must beat."""
