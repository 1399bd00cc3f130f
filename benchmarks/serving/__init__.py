"""Services, peers and clients for the benchmarks of the service."""
