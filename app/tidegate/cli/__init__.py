"""L7: the command line parses, calls, renders."""
