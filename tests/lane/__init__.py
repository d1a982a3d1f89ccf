"""The lane beside the SDK: the same requests both ways, and the same answers."""
