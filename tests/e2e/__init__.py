"""The bridge through real transports and real clients."""
