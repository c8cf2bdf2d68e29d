"""ImageLocality (spec 10 §10.6)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.node_info import NodeInfo
from labkit.plugins.image_locality import ImageLocality, image_score, normalized_image_name

from tests.plugins.helpers import handle, make_node, make_pod, scored

MB = 2**20


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("host:5000/x", "host:5000/x:latest"),
        ("host:5000/x:v1", "host:5000/x:v1"),
        ("x@sha256:abc", "x@sha256:abc"),
        ("", ":latest"),
        ("docker.io/library/nginx", "docker.io/library/nginx:latest"),
    ],
)
def test_names(name: str, full: str) -> None:
    """A name without tag or digest means `latest`; nothing else is added."""
    assert normalized_image_name(name) == full


def cluster() -> list[NodeInfo]:
    """Four nodes: a (500 MB) on n1 and n2, b (2000 MB) on n2 and n4."""
    a, b = {"repo/a:v1": (500 * MB, 2)}, {"repo/b:latest": (2000 * MB, 2)}
    nodes = []
    for name, states in (("n1", a), ("n2", a | b), ("n3", {}), ("n4", b)):
        node = NodeInfo(make_node(name))
        node.image_states = states
        nodes.append(node)
    return nodes


def images(*names: str) -> list[dict[str, Any]]:
    return [{"name": f"c{i}", "image": n} for i, n in enumerate(names)]


@pytest.mark.parametrize(
    ("spec", "scores"),
    [
        ({"containers": images("repo/a:v1", "repo/b")}, [11, 62, 0, 49]),
        ({"containers": images("repo/a:v1")}, [23, 23, 0, 0]),
        (
            {
                "containers": images("repo/a:v1"),
                "initContainers": images("repo/b"),
                "volumes": [{"name": "v", "image": {"reference": "repo/a:v1"}}],
            },
            [24, 74, 0, 49],
        ),
        ({"containers": images("a:v1")}, [0, 0, 0, 0]),
        ({"containers": images("repo/b", "repo/b")}, [0, 100, 0, 100]),
    ],
)
def test_recorded_examples(spec: Any, scores: list[int]) -> None:
    """Scores of the four nodes; an image counts as often as it is used."""
    assert scored(ImageLocality(None, handle(nodes=4)), make_pod(**spec), cluster()) == (scores, scores)


@pytest.mark.parametrize(
    ("found", "containers", "score"),
    [
        (0, 1, 0),
        (23 * MB, 1, 0),
        (23 * MB + 10_000_000, 1, 0),
        (1000 * MB, 1, 100),
        (5000 * MB, 1, 100),
        (1000 * MB, 2, 49),
        # A pod of image volumes only: the lower bound is looked at first.
        (0, 0, 0),
        (24 * MB, 0, 100),
    ],
)
def test_bounds(found: int, containers: int, score: int) -> None:
    """Below 23 MB nothing, from 1000 MB per container everything."""
    assert image_score(found, containers) == score
