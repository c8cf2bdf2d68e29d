"""A bank with every kind of question, and a runner that stands for the engine where a test needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labkit.quiz.bank import load_bank
from labkit.quiz.model import Bank

TEXT = """
title: {en: All kinds, zh: 各种题型}
questions:
  - id: one
    kind: single
    text: {en: Pick A, zh: 选 A}
    options:
      - {id: a, text: {en: A, zh: 甲}, explain: {en: A it is, zh: 是甲}, correct: true}
      - {id: b, text: {en: B, zh: 乙}, explain: {en: B is not, zh: 不是乙}}
    evidence:
      - {about: {en: codes, zh: 状态码}, options: [a, b], call: status_codes, result: &codes
          [Success, Error, Unschedulable, UnschedulableAndUnresolvable, Wait, Skip, Pending]}
  - id: many
    kind: multiple
    points: 2
    text: {en: Pick A and B, zh: 选甲和乙}
    options:
      - {id: a, text: {en: A, zh: 甲}, explain: {en: it is, zh: 对}, correct: true}
      - {id: b, text: {en: B, zh: 乙}, explain: {en: it is, zh: 对}, correct: true}
      - {id: c, text: {en: C, zh: 丙}, explain: {en: it is not, zh: 错}}
      - {id: d, text: {en: D, zh: 丁}, explain: {en: it is not, zh: 错}}
    evidence: [{about: {en: codes, zh: 状态码}, options: [a, b, c, d], call: status_codes, result: *codes}]
  - id: number
    kind: numeric
    text: {en: "How many CPUs are left of ${total}?", zh: "${total} 个 CPU 还剩几个？"}
    unit: CPU
    parameters: {total: {start: 4, stop: 16, step: 4}, used: {choose: [1, 2, 3]}}
    scenario: {nodes: {n1: {cpu: "${total}"}}, pods: {web: {cpu: "${used}"}}}
    key: [web, left]
    mistakes: [{value: "${total}", explain: {en: the pod counts too, zh: Pod 也要算}}]
  - id: order
    kind: order
    text: {en: Sort, zh: 排序}
    items:
      - {id: f, text: {en: Filter, zh: Filter}}
      - {id: s, text: {en: Score, zh: Score}}
      - {id: b, text: {en: Bind, zh: Bind}}
    evidence: [{about: {en: order, zh: 顺序}, call: status_codes, result: *codes}]
  - id: match
    kind: match
    text: {en: Match, zh: 配对}
    pairs:
      - {id: x, left: {en: one, zh: 一}, right: {en: "1", zh: "1"}}
      - {id: y, left: {en: two, zh: 二}, right: {en: "2", zh: "2"}}
    evidence: [{about: {en: pairs, zh: 配对}, call: status_codes, result: *codes}]
  - id: fix
    kind: fix_yaml
    text: {en: Make web fit, zh: 让 web 放得下}
    scenario: {nodes: {n1: {cpu: 2}}}
    start: "kind: Pod\\nmetadata: {name: web}\\nspec: {containers: [{name: a, resources: {requests: {cpu: 3}}}]}\\n"
    solution: "kind: Pod\\nmetadata: {name: web}\\nspec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}\\n"
    goal: {web: {bound: n1, message: null}}
  - id: where
    kind: predict_node
    text: {en: "Where does web go?", zh: "web 去哪里？"}
    pod: web
    scenario: {nodes: {n1: {cpu: 1}, n2: {cpu: 4}}, pods: {web: {cpu: 2}}}
"""


def write_bank(folder: Path, text: str = TEXT, name: str = "kinds") -> Path:
    """The bank as a file."""
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def bank(folder: Path) -> Bank:
    """The bank, loaded."""
    return load_bank(write_bank(folder))


def cpu_runner(scenario: dict[str, Any]) -> dict[str, Any]:
    """Places each pod on the first node with enough CPU; `left` is what remains there."""
    nodes = {o["metadata"]["name"]: int(o["status"]["allocatable"]["cpu"]) for o in scenario["objects"]}
    decisions = []
    for pod in scenario["pods"]:
        cpu = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        fits = [n for n, free in nodes.items() if free >= cpu]
        bad = {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
        decisions.append(
            {
                "pod": f"default/{pod['metadata']['name']}",
                "bound": fits[0] if fits else None,
                "best": fits[:1],
                "message": None if fits else "no room",
                "fullMessage": None if fits else "no room",
                "filter": {n: {"code": "Success"} if n in fits else bad for n in nodes},
                "scores": {},
                "left": nodes[fits[0]] - cpu if fits else None,
            }
        )
        if fits:
            nodes[fits[0]] -= cpu
    return {"expect": decisions}
