"""Shared test machinery: real servers, real processes, an independent ledger. See README.md beside this file."""
