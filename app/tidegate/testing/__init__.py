"""L5: what users need in their own test suites."""
