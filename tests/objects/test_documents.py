"""Objects out of YAML and JSON text, and errors that say file, document and line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.errors import InputError
from labkit.objects.documents import load_documents


def names(text: str) -> list[tuple[int, Any]]:
    return [(d.number, d.raw.get("metadata", {}).get("name")) for d in load_documents(text, "f.yaml")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("---\n---\n# nothing\n", []),
        ("kind: Pod\nmetadata: {name: a}\n", [(1, "a")]),
        ("kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\n", [(1, "a"), (2, "b")]),
        ('{"kind": "Pod", "metadata": {"name": "a"}}', [(1, "a")]),
        ('{"metadata": {"name": "a"}}\n{"metadata": {"name": "b"}}\n', [(1, "a"), (2, "b")]),
        (
            "kind: List\nitems:\n- {kind: Pod, metadata: {name: a}}\n- {kind: Pod, metadata: {name: b}}\n",
            [(1, "a"), (1, "b")],
        ),
        ("kind: List\nitems:\n- {kind: PodList, items: [{metadata: {name: a}}, null]}\n", [(1, "a")]),
        ("\ufeffkind: Pod\nmetadata: {name: a}\n", [(1, "a")]),
    ],
)
def test_documents(text: str, found: list[tuple[int, str]]) -> None:
    """(document number, name) of each object; lists are flattened, empty documents dropped."""
    assert names(text) == found


def test_items_of_a_typed_list_get_their_kind() -> None:
    """In a PodList the items need not say that they are pods."""
    (document,) = load_documents("{kind: PodList, apiVersion: v1, items: [{metadata: {name: a}}]}")
    assert (document.raw["kind"], document.raw["apiVersion"], document.label) == ("Pod", "v1", "Pod a")


def test_yaml_is_read_as_json_would_have_it() -> None:
    """Keys are text, times stay text."""
    (document,) = load_documents("a: {2: x, true: y, null: z, 1.5: w}\nt: 2024-01-01T00:00:00Z\n")
    assert document.raw == {
        "a": {"2": "x", "true": "y", "null": "z", "1.5": "w"},
        "t": "2024-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("text", "document", "says"),
    [
        ("a: b: c", 1, "line 1, column 5: malformed YAML"),
        ("a: 1\n---\nb: [1,\nc: 2", 2, "malformed YAML"),
        ("a: 1\n---\n- 3", 2, "expected a Kubernetes object, got list"),
        ("just text", 1, "expected a Kubernetes object, got str"),
        ('{"a": 1', 1, "malformed YAML"),
        ("[" * 5000, 1, "malformed YAML"),
        ("a: &a [*a]", 1, "endless or far too large"),
        ("a: !!python/object/apply:os.system [ls]", 1, "malformed YAML"),
        ("a: \x01", 1, "malformed YAML"),
    ],
)
def test_malformed(text: str, document: int, says: str) -> None:
    """File and document number lead the message."""
    with pytest.raises(InputError) as caught:
        load_documents(text, "f.yaml")
    assert (caught.value.file, caught.value.document) == ("f.yaml", document)
    assert says in str(caught.value)


def test_alias_bombs_are_refused() -> None:
    """A few lines of aliases that stand for billions of values are refused, not expanded."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(InputError, match="endless or far too large"):
        load_documents("\n".join(lines))


def test_aliases_are_welcome() -> None:
    """Ordinary anchors, aliases and merge keys work."""
    (document,) = load_documents("x: &x {cpu: 1}\ny: *x\nz: {<<: *x, memory: 2}\n")
    assert (document.raw["y"], document.raw["z"]) == ({"cpu": 1}, {"cpu": 1, "memory": 2})


@given(st.text(max_size=40))
def test_any_text_gives_documents_or_an_input_error(text: str) -> None:
    """No text raises anything else."""
    try:
        places = {d.source for d in load_documents(text, "f")}
    except InputError as e:
        places = {e.file or "nowhere"}
    assert places <= {"f"}
