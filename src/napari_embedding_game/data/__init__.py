"""Files in, files out: reading, checking and writing; no engine and no window."""
