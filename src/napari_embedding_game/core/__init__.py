"""The engine: neighbours, edges, start, game; it knows no files and no window."""
