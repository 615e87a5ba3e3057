"""The engine: neighbours, edges, start, game; it reads no files and opens no window."""
