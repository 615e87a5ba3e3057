"""The images of the map: linked layers, pictures, measuring."""
