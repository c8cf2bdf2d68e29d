"""`labkit simulate`: files in, a table, JSON or YAML out; bad input named, exit 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from labkit.cli import main
from labkit.i18n import language

CLUSTER = """apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
- {kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}}
- kind: Node
  metadata: {name: n3}
  spec: {taints: [{key: gpu, effect: NoSchedule}]}
  status: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}}
- kind: Pod
  metadata: {name: web, namespace: shop}
  spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
- kind: Pod
  metadata: {name: huge, namespace: shop}
  spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "9"}}}]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The file `c.yaml`."""
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    code: Any = 0
    try:
        main(["simulate", *map(str, args)])
    except SystemExit as end:
        code = end.code or 0
    out, err = capsys.readouterr()
    return int(code), out, err


def test_table(capsys: pytest.CaptureFixture[str], cluster: Path) -> None:
    """A row per pending pod: where, or why not; then nodes x plugins, scores and the winner."""
    code, out, err = run(capsys, "-f", cluster)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "3 nodes, 0 pods on them; 1 of 2 pending pods finds a node."
    assert lines[4].split()[:4] == ["shop/web", "✓", "scheduled", "n2"]
    assert lines[5].split()[:4] == ["shop/huge", "✕", "unschedulable", "–"]
    assert "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu." in out
    assert "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling." in out
    assert "▸ n2" in out


def test_chinese(capsys: pytest.CaptureFixture[str], cluster: Path) -> None:
    """The words of the lab in Chinese; kube-scheduler's reason as it is."""
    with language("zh"):
        code, out, _ = run(capsys, "-f", cluster)
    assert code == 0
    assert "✓ 已调度" in out
    assert "Insufficient cpu" in out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_machine_readable(capsys: pytest.CaptureFixture[str], cluster: Path, form: str) -> None:
    """The decision record of every attempt, in the form of the golden traces."""
    code, out, _ = run(capsys, "-f", cluster, "-o", form)
    found = json.loads(out) if form == "json" else yaml.safe_load(out)
    web, huge = found["pods"]
    assert code == 0
    assert (web["pod"], web["result"], web["node"], web["message"]) == ("shop/web", "scheduled", "n2", None)
    assert web["attempts"][0]["filter"]["n3"]["plugin"] == "TaintToleration"
    assert web["attempts"][0]["bound"] == "n2"
    assert (huge["result"], huge["node"]) == ("unschedulable", None)
    assert huge["message"].startswith("0/3 nodes are available: ")


def test_bad_input_is_named_the_rest_is_simulated(capsys: pytest.CaptureFixture[str], cluster: Path) -> None:
    """A second file with three mistakes: exit 2, each with its place, and web still goes to n2."""
    bad = cluster.with_name("bad.yaml")
    bad.write_text(
        "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, resources: {requests: {cpu: lots}}}]}\n"
        "---\nkind: Pod\nmetadata: {name: b}\nspec: {nodeName: n9}\n"
        "---\nkind: Gadget\nmetadata: {name: g}\n",
        encoding="utf-8",
    )
    code, out, err = run(capsys, "-f", cluster, "-f", bad)
    assert code == 2
    assert "shop/web" in out
    for part in (
        f"{bad}, document 1, Pod a, spec.containers[0].resources.requests.cpu: 'lots' is not a quantity",
        f'{bad}, document 2, Pod b, spec.nodeName: there is no node "n9" in the input',
        f'{bad}, document 3, Gadget g, kind: kind "Gadget" is not a Kubernetes kind',
    ):
        assert part in err
    code, out, _ = run(capsys, "-f", cluster, bad, "-o", "json")
    assert code == 2
    assert [(p["document"], p["field"]) for p in json.loads(out)["problems"]] == [
        (1, "spec.containers[0].resources.requests.cpu"),
        (2, "spec.nodeName"),
        (3, "kind"),
    ]


def test_config_file(capsys: pytest.CaptureFixture[str], cluster: Path) -> None:
    """The profile decides; a refused configuration is named with kube-scheduler's text, exit 2."""
    config = cluster.with_name("scheduler.yaml")
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]\n",
        encoding="utf-8",
    )
    code, out, _ = run(capsys, "-f", cluster, "--config", config, "-o", "json")
    assert code == 0
    assert json.loads(out)["pods"][0]["attempts"][0]["filter"]["n3"] == {"code": "Success"}
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nbogus: 1\n"
    )
    code, out, err = run(capsys, "-f", cluster, "--config", config)
    assert (code, out) == (2, "")
    assert str(config) in err
    assert "bogus" in err


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-f", "nothing.yaml"],
        ["-f", "c.yaml", "-o", "xml"],
        ["-f", "c.yaml", "--feature-gates", "No=true"],
    ],
    ids=" ".join,
)
def test_wrong_use(
    capsys: pytest.CaptureFixture[str], cluster: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """Exit 2 and a message, no traceback."""
    monkeypatch.chdir(cluster.parent)
    code, _, err = run(capsys, *args)
    assert code == 2
    assert err
    assert "Traceback" not in err


def test_binary_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Not text at all."""
    (tmp_path / "x.yaml").write_bytes(b"\x80\x81\x00")
    code, _, err = run(capsys, "-f", tmp_path / "x.yaml")
    assert code == 2
    assert "UTF-8" in err


def test_stdin_folder_and_determinism(cluster: Path) -> None:
    """`kubectl get ... | labkit simulate -f -` and a folder say the same, twice."""
    program = [sys.executable, "-c", "from labkit.cli import main; main()", "simulate", "-o", "json", "-f"]
    piped = subprocess.run([*program, "-"], input=CLUSTER, capture_output=True, text=True, check=True).stdout
    folder = subprocess.run(
        [*program, str(cluster.parent)], capture_output=True, text=True, check=True
    ).stdout
    assert piped == folder
