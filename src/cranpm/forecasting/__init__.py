"""From a start day to published fields of the days ahead."""
