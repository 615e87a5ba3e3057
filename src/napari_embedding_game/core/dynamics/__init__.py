"""The movement of points: the game, its schedule, and the loop that runs it."""
