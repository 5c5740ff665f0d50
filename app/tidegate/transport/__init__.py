"""L4: the kombu transport. An adapter without policy."""
