"""How the points move: one driver, and the dynamics that it drives."""
