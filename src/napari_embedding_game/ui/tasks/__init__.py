"""Tasks that read, write and compute in background threads."""
