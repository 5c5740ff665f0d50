"""L3: the only door to Redis or Valkey."""
