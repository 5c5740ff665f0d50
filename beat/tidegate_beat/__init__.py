"""The scheduler process: plans and emits fires."""
