"""How the points move: the game, and how it is played and steered."""
