"""L0: what things are and how decisions are made. No I/O, clock or randomness (import-linter keeps it so)."""
