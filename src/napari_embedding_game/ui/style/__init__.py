"""Colours, theme and widgets that several docks share."""
