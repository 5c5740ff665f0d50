"""L4: the fleet in numbers for Prometheus: one snapshot per scrape, the catalogue's names, a small HTTP server."""

from __future__ import annotations

from tidegate.observe.collector import FleetCollector
from tidegate.observe.errors import CannotListen
from tidegate.observe.exporter import Exporter

__all__ = ["CannotListen", "Exporter", "FleetCollector"]
