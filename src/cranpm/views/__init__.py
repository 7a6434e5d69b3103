"""What people see: figures, reports, the web map and its API."""
