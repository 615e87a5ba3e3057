"""What is painted over the map: names, lines, the lasso."""
