"""Formats in which providers send their files."""
