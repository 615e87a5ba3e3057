"""What a map tells: clusters, marker genes, figures of quality."""
