"""The energies: methods, pair functions, their sums, and pressure."""
