"""What stands between a client and an upstream server in bench.pool, and the upstream itself."""
