"""`make bench`: Tidegate beside stock Celery, on one server, in one run."""
