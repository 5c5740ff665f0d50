"""L1: tidegate.toml and the environment become frozen settings."""
