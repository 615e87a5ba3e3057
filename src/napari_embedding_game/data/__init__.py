"""Read, check and write files; imports neither the engine nor the window."""
