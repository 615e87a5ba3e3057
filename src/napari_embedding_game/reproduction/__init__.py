"""What the papers report, computed anew: figure, table and JSON for each."""
