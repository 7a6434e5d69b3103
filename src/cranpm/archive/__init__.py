"""The archive of days: icechunk, one commit a day, checksums, versions."""
