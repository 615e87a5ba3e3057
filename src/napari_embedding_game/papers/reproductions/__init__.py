"""What the papers report, computed anew: figures, tables and criteria."""
