"""L5: Celery wiring: install, bootsteps, request, heartbeat."""
