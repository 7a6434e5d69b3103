"""Published forecasts, read back: which there are, their pixels, points and boxes."""
