"""New cells on a map that was fitted before."""
