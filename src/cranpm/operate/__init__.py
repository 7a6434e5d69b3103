"""Running the product day by day."""
