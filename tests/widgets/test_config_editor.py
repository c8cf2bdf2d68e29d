"""Configuration editor: what is typed -> kube-scheduler's words, the plugins that result, the pods that move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from labkit import Lab
from labkit.config import ConfigError, check_config
from labkit.i18n import set_language
from labkit.widgets import config_editor
from labkit.widgets.config_editor import ConfigEditorController

from tests.widgets.blocks import cells, column, controls, of_type, text_of

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACK = (
    HEAD
    + """profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        disabled: [{name: ImageLocality}]
      score:
        enabled: [{name: NodeResourcesFit, weight: 10}]
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}
"""
)
TWO = HEAD + "profiles: [{schedulerName: default-scheduler}, {schedulerName: packer}]\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '8', memory: 16Gi, pods: '110'}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\nspec: {%s containers: [{name: c, image: a, resources: {requests: {cpu: '%s', memory: 2Gi}}}]}\n"


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both languages, one after the other."""
    set_language(request.param)
    yield request.param
    set_language("en")


def small_lab(*pods: str, **options: Any) -> Lab:
    """A busy node, an idle one, and pods that wait."""
    lab = Lab(NODE % "busy" + "---\n" + NODE % "idle", **options)
    lab.apply(POD % ("db", "nodeName: busy, ", "4"))
    for pod in pods:
        lab.apply(POD % (pod, "", "1"))
    return lab


def tables(view: Any) -> list[dict[str, Any]]:
    """Weights, plugins by point, pods."""
    return of_type(view, "table")


def errors(view: Any) -> list[str]:
    """Refusals that are shown."""
    return [n["text"] for n in of_type(view, "notice") if n["status"] == "error"]


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (HEAD.replace("/v1", "/v1beta3"), "load"),
        (HEAD + "profile: []\n", "load"),
        (HEAD + "profiles: [\n", "load"),
        ("", "load"),
        (HEAD + "parallelism: 0\n", "validate"),
        (HEAD + "profiles: [{}, {}]\n", "validate"),
        (HEAD + "profiles: [{plugins: {score: {enabled: [{name: Nope}]}}}]\n", "init"),
        (HEAD + "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]\n", "init"),
    ],
)
def test_a_refusal_is_shown_word_for_word_with_what_to_do(text: str, stage: str, language: str) -> None:
    """kube-scheduler's own text, the hint in the learner's language, and the stage; the widget lives on."""
    with pytest.raises(ConfigError) as expected:
        check_config(text)
    editor = ConfigEditorController(small_lab("web"), PACK)
    editor.handle("code", text)
    view = editor.view()
    assert editor.error is not None
    assert editor.error.stage == stage
    assert errors(view) == [expected.value.message]
    said = of_type(view, "verdict")[0]
    assert said["text"].startswith("What to do: " if language == "en" else "怎么办：")
    hint = expected.value.hint_in(language)
    assert hint is None or hint in said["text"]
    number = {"load": "1", "validate": "2", "init": "3"}[stage]
    assert number in said["why"]
    editor.handle("code", PACK)
    assert not errors(editor.view())


def test_weights_and_plugins_are_those_of_a_lab_started_with_the_file(language: str) -> None:
    """The tables against the real thing, before and after."""
    lab = small_lab("web")
    now, then = lab.plugins, Lab(config=PACK).plugins
    weights, points, _ = tables(ConfigEditorController(lab, PACK).view())[:3]
    old, new, change = (list(column(weights, c["text"]).items()) for c in weights["columns"][1:])
    assert {n: int(w) for n, w in new if w != "–"} == then.weights()
    assert {n: int(w) for n, w in old if w != "–"} == now.weights()
    assert dict(new)["ImageLocality"] == "–"
    assert dict(change)["PodTopologySpread"] in ("skip same", "skip 不变")
    assert dict(change)["NodeResourcesFit"] in ("now heavier", "now 加重")
    shown = {r[0]: r[1].split(", ") for r in cells(points)}
    assert shown["score"] == [f"{n} ×{w}" for n, w in then.weights().items()]
    assert shown["score"][0] == "NodeResourcesFit ×10"
    for key, point in (
        ("preFilter", "pre_filter"),
        ("filter", "filter"),
        ("bind", "bind"),
        ("preEnqueue", "pre_enqueue"),
    ):
        assert shown[key] == then.names(point)
    score = {r[0]: r[2] for r in cells(points)}["score"]
    assert "− ImageLocality" in score
    assert "NodeResourcesFit ×1 → ×10" in score
    assert ("another order" if language == "en" else "顺序变了") in score


def test_pods_that_move_are_those_that_move_in_a_lab_started_with_the_file(language: str) -> None:
    """The comparison is a real decision under each configuration, and leaves the lab alone."""
    lab = small_lab("web", "api")
    editor = ConfigEditorController(lab, HEAD)
    assert "0" in editor.summary()
    editor.handle("code", PACK)
    assert {d.pod: d.nodes for d in editor.result.differences} == {
        "default/web": ("idle", "busy"),
        "default/api": ("idle", "busy"),
    }
    packed = small_lab("web", "api", config=PACK)
    packed.run()
    assert {p["metadata"]["name"]: p["spec"]["nodeName"] for p in packed.pods()} == {
        "db": "busy",
        "web": "busy",
        "api": "busy",
    }
    pods = tables(editor.view())[3]
    assert sorted(r[:3] for r in cells(pods)) == [["api", "idle", "busy"], ["web", "idle", "busy"]]
    assert not lab.traces
    assert sorted(p["spec"].get("nodeName", "") for p in lab.pods()) == ["", "", "busy"]
    assert lab.plugins.weights()["NodeResourcesFit"] == 1
    assert "2" in editor.summary()


def test_a_refused_text_keeps_what_the_last_accepted_one_gives() -> None:
    """Half-typed words do not make the tables jump; they say whose they are."""
    editor = ConfigEditorController(small_lab("web"), PACK)
    before = tables(editor.view())
    editor.handle("code", PACK.replace("MostAllocated", "MostAll"))
    assert tables(editor.view()) == before
    assert "the last text that was accepted" in text_of(editor.view())
    assert editor.summary().startswith("refused: ")
    editor.handle("reset", None)
    assert editor.error is None
    assert editor.text == PACK
    assert controls(editor.view())["reset"]["disabled"]


def test_a_text_refused_from_the_start_shows_no_tables(language: str) -> None:
    """Nothing is known yet."""
    editor = ConfigEditorController(small_lab("web"), "profiles: [")
    assert not tables(editor.view())
    assert len(errors(editor.view())) == 1


def test_each_profile_has_its_own_plugins(language: str) -> None:
    """The list of profiles; a new one is compared with the lab's own."""
    lab = small_lab()
    editor = ConfigEditorController(lab, TWO + "  # two profiles\n")
    assert [o["value"] for o in controls(editor.view())["profile"]["options"]] == [
        "default-scheduler",
        "packer",
    ]
    editor.handle("profile", "packer")
    assert ("has no profile packer" if language == "en" else "没有 profile packer") in text_of(editor.view())
    editor.handle("code", HEAD)
    assert editor.profile == "default-scheduler"
    assert "profile" not in controls(editor.view())


def test_pods_whose_profile_is_gone_are_named(language: str) -> None:
    """Nobody schedules them any more."""
    lab = small_lab("web", config=TWO)
    lab.apply(POD % ("job", "schedulerName: packer, ", "1"))
    editor = ConfigEditorController(lab, HEAD)
    lost = [n["text"] for n in of_type(editor.view(), "notice") if n["status"] == "fail"]
    assert len(lost) == 1
    assert "job" in lost[0]
    assert "web" not in lost[0]
    editor.handle("code", TWO)
    assert not [n for n in of_type(editor.view(), "notice") if n["status"] == "fail"]


def test_a_misspelt_plugin_in_disabled_is_remarked(language: str) -> None:
    """It is accepted and does nothing, which nobody would notice."""
    text = HEAD + "profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]\n"
    editor = ConfigEditorController(small_lab(), text)
    assert editor.error is None
    remarks = [n["text"] for n in of_type(editor.view(), "notice") if n["status"] == "wait"]
    assert len(remarks) == 1
    assert "ImageLocalty" in remarks[0]
    assert "score" in remarks[0]
    editor.handle("code", text.replace("ImageLocalty", "ImageLocality"))
    assert not [n for n in of_type(editor.view(), "notice") if n["status"] == "wait"]


class Prefer:
    """Scores one node only."""

    handle: Any = None

    def score(self, state: Any, pod: Any, node: Any) -> int:
        """100 for the busy one."""
        return 100 if node.name == "busy" else 0


def test_the_labs_own_plugins_and_gates_count() -> None:
    """A class can be named; an object runs under any file; gates decide which plugins are there."""
    named = HEAD + "profiles: [{plugins: {score: {enabled: [{name: Prefer, weight: 9}]}}}]\n"
    assert "Prefer" in str(ConfigEditorController(small_lab("web"), named).error)
    editor = ConfigEditorController(small_lab("web", plugins=[Prefer], config=named), named)
    assert editor.error is None
    assert [d.nodes for d in editor.result.differences] == [("busy", "busy")]
    editor.handle("code", HEAD + "profiles: [{plugins: {score: {disabled: [{name: Prefer}]}}}]\n")
    assert [d.nodes for d in editor.result.differences] == [("busy", "idle")]
    lab = small_lab("web", plugins=[Prefer()])
    (own,) = (
        p for p in lab.scheduler.frameworks["default-scheduler"].plugins("score") if isinstance(p, Prefer)
    )
    running = ConfigEditorController(lab, HEAD)
    assert own.handle is lab.scheduler.frameworks["default-scheduler"]
    assert running.plugins["default-scheduler"]["score"][-1] == ("Prefer", 1)
    assert not running.result.changed
    gated = ConfigEditorController(small_lab(gates={"GenericWorkload": True, "GangScheduling": True}), HEAD)
    names = [n for n, _ in gated.plugins["default-scheduler"]["permit"]]
    assert names == ["GangScheduling"]


def test_many_waiting_pods_are_decided_on_demand(language: str) -> None:
    """Typing stays quick; the button decides."""
    lab = small_lab(*(f"p{i}" for i in range(61)))
    editor = ConfigEditorController(lab, HEAD)
    assert editor.result is None
    assert "61" in controls(editor.view())["compare"]["text"]
    editor.handle("compare", None)
    assert len(editor.result.differences) == 61
    assert "compare" not in controls(editor.view())
    editor.handle("code", PACK)
    assert editor.result is None


def test_the_lab_may_move_on() -> None:
    """What was placed meanwhile is not compared any more."""
    lab = small_lab("web", "api")
    widget = config_editor(PACK, lab)
    lab.schedule_one()
    widget.set("profile", "default-scheduler")
    assert [d.pod for d in widget.controller.result.differences] in (["default/web"], ["default/api"])


def test_both_decisions_of_a_pod_can_be_read() -> None:
    """The pod is chosen from a list."""
    editor = ConfigEditorController(small_lab("web", "api"), PACK)
    editor.handle("pod", "default/api")
    assert controls(editor.view())["pod"]["value"] == "default/api"
    texts = [b["text"] for b in of_type(editor.view(), "verdict")]
    assert len(texts) == 2
    assert "idle" in texts[0]
    assert "busy" in texts[1]


def test_settings_and_arguments_that_differ_are_listed() -> None:
    """Every difference by its path, with both values; what is the same in both is not listed."""
    text = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 60
leaderElection: {leaderElect: false}
profiles:
- percentageOfNodesToScore: 50
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
"""
    editor = ConfigEditorController(Lab("three-zones"), text)
    found = next(
        {row[0]: tuple(row[1:]) for row in cells(table)}
        for table in of_type(editor.view(), "table")
        if table["columns"][0]["text"] == "Setting"
    )
    assert found == {
        "leaderElection.leaderElect": ("true", "false"),
        "podMaxBackoffSeconds": ("10", "60"),
        "profile.percentageOfNodesToScore": ("–", "50"),
        "NodeResourcesFit.scoringStrategy.resources[0].weight": ("1", "3"),
        "NodeResourcesFit.scoringStrategy.resources[1].name": ("memory", "–"),
        "NodeResourcesFit.scoringStrategy.resources[1].weight": ("1", "–"),
        "NodeResourcesFit.scoringStrategy.type": ("LeastAllocated", "MostAllocated"),
    }
    same = ConfigEditorController(Lab("three-zones"), HEAD)
    assert "are the same" in text_of(same.view())
