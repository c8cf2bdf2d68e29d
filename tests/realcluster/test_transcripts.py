"""What is washed out of kubectl's output before two transcripts are compared."""

from __future__ import annotations

import pytest

from .transcripts import wash


@pytest.mark.parametrize(
    ("text", "washed"),
    [
        ("NAME   AGE   NODE\np      5m3s  n-1\n", "NAME  AGE  NODE\np  <age>  n-1"),
        ("NAME   CPU    AGE\np      100m   12s\n", "NAME  CPU  AGE\np  100m  <age>"),
        ("LAST SEEN           TYPE\n5s (x3 over 2m10s)   Normal\n", "LAST SEEN  TYPE\n<age>  Normal"),
        ("Age:   3h5m\nName:   age-5m\n", "Age:  <age>\nName:  age-5m"),
        (
            'uid: 0fd8e6ce-0c59-4c5b-a3c4-2f2c1a9d8a11\n  resourceVersion: "12"\n',
            "uid: <uid>\n  resourceVersion: <version>",
        ),
        (
            '{"metadata":{"resourceVersion":"7","managedFields":[1]}}',
            '{\n    "metadata": {\n        "resourceVersion": <version>\n    }\n}',
        ),
        ("Forbidden: no\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9 @@\n d\n\nnext\n", "Forbidden: no\nnext"),
        ("created 2026-01-01T00:00:00.123456Z by 5m", "created <time> by 5m"),
    ],
)
def test_wash_takes_only_what_differs_by_nature(text: str, washed: str) -> None:
    """Ages only in their columns, ids, versions and times anywhere; quantities such as 100m stay."""
    assert wash(text) == washed
