"""The session file: written, read, checked; saved automatically."""
