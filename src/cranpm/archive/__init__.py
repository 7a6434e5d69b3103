"""The archive of days: icechunk, one commit per day, checksums, versions."""
