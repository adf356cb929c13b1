"""Build pgque.sql from src/ in name order; `--check` only compares."""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "pgque.sql"


def build() -> str:
    """Return the text of pgque.sql."""
    version = (HERE / "VERSION").read_text().strip()
    parts = [f"-- Generated from src/, version {version}: do not edit.\n"]
    for source in sorted((HERE / "src").glob("*.sql")):
        parts.append(f"\n-- src/{source.name}\n\n{source.read_text().replace('<version>', version)}")
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file on disk, write nothing")
    check = parser.parse_args().check
    text = build()
    if not check:
        OUTPUT.write_text(text)
        return 0
    if OUTPUT.exists() and OUTPUT.read_text() == text:
        return 0
    sys.stderr.write("vendor/pgque/pgque.sql is stale: run `make build-sql`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
