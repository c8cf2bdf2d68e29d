"""The learner's language: English or Simplified Chinese. Importable by every floor; imports nothing of ours.

The language is, in this order: what `set_language` said, the environment variable LABKIT_LANG, the file
`lab.json` in the current folder or one above it (a workspace or a released module has one), English.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")
#: Written into workspaces and releases, beside the notebooks: `{"language": "zh", ...}`.
LANGUAGE_FILE = "lab.json"

_chosen: str | None = None


def normalise_language(value: str) -> str | None:
    """ "zh_CN.UTF-8", "zh-Hans", "ZH" -> "zh"; "en-GB" -> "en"; anything else -> None."""
    short = value.strip().lower().replace("_", "-").split(".")[0].split("-")[0]
    return {"zh": "zh", "cn": "zh", "en": "en", "c": "en"}.get(short)


def set_language(language: str | None) -> None:
    """Choose the language of all later texts; None goes back to environment and file. Raises ValueError."""
    global _chosen
    if language is None:
        _chosen = None
    else:
        known = normalise_language(language)
        if known is None:
            raise ValueError(f"language {language!r} is neither 'en' nor 'zh'")
        _chosen = known
    _from_files.cache_clear()


def get_language() -> str:
    """The current language, "en" or "zh"."""
    if _chosen is not None:
        return _chosen
    from_environment = normalise_language(os.environ.get("LABKIT_LANG", ""))
    return from_environment or _from_files(os.getcwd()) or "en"


@cache
def _from_files(folder: str) -> str | None:
    here = Path(folder)
    for place in (here, *list(here.parents)[:4]):
        try:
            content = json.loads((place / LANGUAGE_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and isinstance(content.get("language"), str):
            return normalise_language(content["language"])
    return None


@contextmanager
def language(name: str) -> Iterator[None]:
    """Use another language inside a `with` block."""
    before = _chosen
    set_language(name)
    try:
        yield
    finally:
        set_language(before)


def t(en: str, zh: str) -> str:
    """The text in the current language."""
    return zh if get_language() == "zh" else en


class Catalogue:
    """Messages by id: `Catalogue({"saved": ("Saved {n} answers.", "已保存 {n} 个答案。")})("saved", n=3)`."""

    def __init__(self, messages: Mapping[str, tuple[str, str]]) -> None:
        self.messages = dict(messages)

    def __call__(self, id: str, /, **values: Any) -> str:
        """The message in the current language with its fields filled. An unknown id raises KeyError."""
        en, zh = self.messages[id]
        return (zh if get_language() == "zh" else en).format(**values)
