"""What a file may unpack to, checked before anything is unpacked."""
