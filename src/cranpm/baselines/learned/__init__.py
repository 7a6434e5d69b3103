"""Networks at 25 km from the literature, trained by the same loop as ours."""
