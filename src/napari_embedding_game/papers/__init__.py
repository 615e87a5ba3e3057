"""What only a paper needs."""
