"""Shared test machinery: real servers, real processes, an independent ledger. README.md explains it."""
