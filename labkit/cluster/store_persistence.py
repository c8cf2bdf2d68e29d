"""The store on disk: SQLite in WAL mode, one transaction a write.

A write is acknowledged after its commit, and a commit in WAL mode is in the operating system's hands: a killed
process loses nothing. With `synchronous=FULL` a power cut loses nothing either.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from labkit.errors import LabError

FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (resource, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


class Database:
    """The objects of one data directory. One process at a time: a second one is refused."""

    def __init__(self, data_dir: str | Path, *, synchronous: str = "NORMAL") -> None:
        directory = Path(data_dir)
        self.path = directory / "state.db"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=0.5)
            # Exclusive: two servers over one file would answer from two memories.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA synchronous={synchronous}")
            self._db.execute("PRAGMA wal_autocheckpoint=2000")
            self._db.executescript(_TABLES)
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (FORMAT,))
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('version', 0)")
            found = self._meta("format")
        except sqlite3.OperationalError as e:
            self._close_quietly()
            hint = (
                "another API server uses this directory; stop it, or give --data-dir another one"
                if "locked" in str(e)
                else "the directory must exist or be creatable, and be writable"
            )
            raise LabError(f"cannot open {self.path}: {e}", hint=hint) from e
        except sqlite3.DatabaseError as e:
            raise self._unreadable(e) from e
        except OSError as e:
            raise LabError(
                f"cannot use {directory}: {e.strerror}", hint="give a directory that you may write to"
            ) from e
        if found != FORMAT:
            self._close_quietly()
            raise LabError(
                f"{self.path} has format {found}, this program reads format {FORMAT}",
                hint="use the version that wrote it, or a new --data-dir",
            )

    def _meta(self, name: str) -> int:
        (value,) = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return int(value)

    def version(self) -> int:
        """The resourceVersion of the last committed write."""
        return self._meta("version")

    def load(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every object as (resource, key, object). LabError when the file is damaged."""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        try:
            for resource, key, body in self._db.execute("SELECT resource, key, body FROM objects"):
                yield resource, key, decode(body)
        except (sqlite3.DatabaseError, msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise self._unreadable(e) from e

    def _close_quietly(self) -> None:
        """Let go of a file that cannot be used, and of its lock."""
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self._db.close()

    def _unreadable(self, error: Exception) -> LabError:
        self._close_quietly()
        damaged = "not a database" not in str(error)
        what = "the file is damaged" if damaged else "it is no database of this program"
        hint = f"{what}: move it away, or give another --data-dir"
        return LabError(f"cannot read {self.path}: {error}", hint=hint)

    def write(self, version: int, resource: str, key: str, obj: dict[str, Any] | None) -> None:
        """Commit one write; None removes the object. sqlite3.Error when the disk refuses."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            if obj is None:
                db.execute("DELETE FROM objects WHERE resource = ? AND key = ?", (resource, key))
            else:
                db.execute(
                    "INSERT OR REPLACE INTO objects VALUES (?, ?, ?)",
                    (resource, key, msgspec.json.encode(obj)),
                )
            db.execute("UPDATE meta SET value = ? WHERE name = 'version'", (version,))
            db.execute("COMMIT")
        except BaseException:
            # A full disk ends the transaction by itself.
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Write the log back and close the file."""
        self._db.close()
