"""docs/store.md: the table of keys between its two marks comes from store/keyspace.py; the prose is written by hand."""

from __future__ import annotations

from pathlib import Path

from tidegate.store.keyspace import KEYS

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "store.md"
_BEGIN, _END = "<!-- keys: generated from store/keyspace.py -->\n", "<!-- end of keys -->\n"


def as_markdown() -> str:
    """The page with its table as it should be."""
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = "".join(f"| `{kind.pattern}` | {kind.owner} | {kind.lifetime} |\n" for kind in KEYS)
    return f"{before}{_BEGIN}\n| key | written by | lifetime |\n|---|---|---|\n{rows}\n{_END}{after}"
