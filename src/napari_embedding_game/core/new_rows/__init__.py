"""Rows that come after a fit: places on a map that does not change."""
