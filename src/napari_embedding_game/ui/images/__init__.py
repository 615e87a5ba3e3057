"""The image beside the map: linked layers, pictures, measuring."""
