"""L2: metric catalogue, event types, logging set-up."""
