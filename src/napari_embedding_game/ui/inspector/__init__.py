"""The views of the inspector: cluster table, markers, charts, pictures."""
