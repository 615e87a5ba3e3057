"""The clusters of a session, and a person's edits of them."""
