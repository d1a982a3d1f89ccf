"""What is compared. Each module serves a registry over HTTP, stdio and memory streams, in the environment it needs."""
