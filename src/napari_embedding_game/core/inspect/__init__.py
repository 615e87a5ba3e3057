"""Analysis of a map: clusters, marker genes, measures of quality."""
