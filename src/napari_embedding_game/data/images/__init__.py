"""Label images: their objects, measurements, pictures and links."""
