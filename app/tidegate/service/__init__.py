"""L6: one function per command. The command line, the API and the console call these and add nothing."""
