"""L4: the bundled Valkey server."""
