"""A read-only web map and API for a folder of forecasts."""

from cranpm.views.serve.app import create_app

__all__ = ["create_app"]
