"""Place new rows on a fitted map, which does not change."""
