"""More kubectl sessions that must read the same: autoscalers, other users, patches that are wrong."""

from __future__ import annotations

import json
from typing import Any

from .objects import make_pod
from .transcripts import Step


def _text(*manifests: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


def _autoscaler(name: str, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, **spec},
    }


def _metric(name: str, **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
_METRICS = [
    _metric("cpu", type="Utilization", averageUtilization=70),
    _metric("memory", type="AverageValue", averageValue="512Mi"),
    {
        "type": "Pods",
        "pods": {"metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "1k"}},
    },
]

MORE_SESSIONS: dict[str, list[Step]] = {
    "autoscalers": [
        Step("create deployment web --image=web"),
        Step("autoscale deployment web --min=2 --max=5 --cpu=50%"),
        Step("get hpa"),
        Step("get hpa web -o yaml"),
        Step("create -f -", _text(_autoscaler("defaults", maxReplicas=3))),
        Step("get hpa defaults -o jsonpath='{.spec}'"),
        Step("create -f -", _text(_autoscaler("many", maxReplicas=3, metrics=_METRICS))),
        Step(
            "create -f -",
            _text(_autoscaler("rules", maxReplicas=3, behavior={"scaleDown": {"selectPolicy": "Min"}})),
        ),
        Step("get hpa rules -o jsonpath='{.spec.behavior}'"),
        Step("get hpa"),
        Step("get hpa -o wide"),
        Step('patch hpa web -p \'{"spec":{"maxReplicas":9}}\''),
        Step('patch hpa many --type=json -p \'[{"op":"remove","path":"/spec/metrics/2"}]\''),
        Step("get hpa many"),
        Step("describe hpa web"),
        Step("create -f -", _text(_autoscaler("bad"))),
        Step("create -f -", _text(_autoscaler("bad", minReplicas=5, maxReplicas=3))),
        Step("create -f -", _text(_autoscaler("bad", minReplicas=-1, maxReplicas=3))),
        Step("create -f -", _text(_autoscaler("bad", maxReplicas=-3))),
        Step("create -f -", _text(_autoscaler("bad", maxReplicas=3, metrics=[{"type": "Other"}]))),
        Step("create -f -", _text(_autoscaler("bad", maxReplicas=3, metrics=[{"type": "Resource"}]))),
        Step("create -f -", _text(_autoscaler("bad", maxReplicas=3, metrics=[_metric("cpu")]))),
        Step("create -f -", _text(_autoscaler("bad", maxReplicas=3, scaleTargetRef={}))),
        Step(
            "create -f -", _text(_autoscaler("bad", maxReplicas=3, behavior={"scaleUp": {"policies": [{}]}}))
        ),
        Step("get hpa web -o jsonpath='{.metadata.generation}'"),
        Step("delete hpa web many rules defaults"),
    ],
    "somebody else": [
        Step("auth whoami --as=alice -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'"),
        Step(
            "auth whoami --as=alice --as-group=dev --as-uid=7"
            " -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups} {.status.userInfo.uid}'"
        ),
        Step("auth whoami --as=system:serviceaccount:default:robot -o jsonpath='{.status.userInfo.groups}'"),
        Step("auth can-i list pods --as=alice"),
        Step("get pods --as=alice"),
        Step("get nodes --as=alice"),
        Step("get pod x --as=alice"),
        Step("run p --image=i --as=alice"),
        Step("delete pods --all --as=alice"),
        Step("create role reader --verb=get,list,watch --resource=pods"),
        Step("create rolebinding alice --role=reader --user=alice"),
        Step("create clusterrole nodes --verb=list --resource=nodes"),
        Step("create clusterrolebinding devs --clusterrole=nodes --group=dev"),
        Step("create rolebinding robot --role=reader --serviceaccount=default:robot"),
        Step("get pods --as=alice"),
        Step("get pods -n kube-public --as=alice"),
        Step("run p --image=i --as=alice"),
        Step("get pods --as=system:serviceaccount:default:robot"),
        Step("get pods --as=system:serviceaccount:kube-public:robot"),
        Step("get nodes --as=bob --as-group=dev"),
        Step("get nodes --as=bob --as-group=ops"),
        Step("auth can-i list nodes --as=bob --as-group=dev"),
        Step("auth can-i delete nodes --as=bob --as-group=dev"),
        Step("get --raw /metrics --as=bob"),
        Step("delete clusterrole nodes"),
        Step("get nodes --as=bob --as-group=dev"),
        Step("delete clusterrolebinding devs"),
    ],
    "patches that are wrong": [
        Step("create -f -", _text(_CONFIG_MAP, make_pod("web"))),
        *(
            Step(f"patch {what} --type={kind} -p '{patch}'")
            for what in ("configmap c", "pod web")
            for kind in ("merge", "strategic", "json")
            for patch in (
                "[1]",
                '"text"',
                "7",
                "null",
                "{}",
                "[]",
                '{"metadata":[]}',
                '{"metadata":{"labels":7}}',
            )
        ),
        *(
            Step(f"patch configmap c --type=json -p '{json.dumps([op])}'")
            for op in (
                {"op": "remove", "path": "/data/none"},
                {"op": "replace", "path": "/data/none", "value": "1"},
                {"op": "add", "path": "/none/a", "value": "1"},
                {"op": "test", "path": "/data/a", "value": "2"},
                {"op": "move", "from": "/data/none", "path": "/data/b"},
                {"op": "copy", "from": "/data/a", "path": "/data/b"},
                {"op": "dance", "path": "/data/a"},
                {"op": "add", "path": "data/a", "value": "1"},
                {"op": "add"},
                {"path": "/data/a"},
            )
        ),
        Step('patch pod web -p \'{"spec":{"containers":[{"image":"x"}]}}\''),
        Step('patch pod web -p \'{"spec":{"containers":[{"$patch":"delete","name":"none"}]}}\''),
        Step('patch pod web -p \'{"spec":{"containers":[{"$patch":"dance","name":"main"}]}}\''),
        Step('patch pod web -p \'{"metadata":{"$patch":"dance"}}\''),
        Step('patch pod web --type=merge -p \'{"metadata":{"name":"other"}}\''),
        Step('patch pod web --type=merge -p \'{"metadata":{"namespace":"other"}}\''),
        Step('patch pod web --type=merge -p \'{"metadata":{"uid":"other"}}\''),
        Step('patch pod web --type=merge -p \'{"metadata":{"resourceVersion":"1"}}\''),
        Step('patch pod web --type=merge -p \'{"kind":"Node"}\''),
        Step('patch pod web --type=merge -p \'{"apiVersion":"v2"}\''),
        Step("patch pod web --type=merge -p '{\"bogus\":1}'"),
        Step('patch pod web --type=json -p \'[{"op":"add","path":"/metadata/labels","value":7}]\''),
        Step('patch pod web --type=json -p \'[{"op":"replace","path":"","value":{}}]\''),
        Step('patch pod web --type=json -p \'[{"op":"replace","path":"/kind","value":"Node"}]\''),
        Step('patch pod web --type=json -p \'[{"op":"remove","path":"/metadata"}]\''),
        Step('patch pod web --type=json -p \'[{"op":"replace","path":"/spec/containers/7","value":{}}]\''),
        Step("patch pod web --type=merge -p '{\"spec\":null}'"),
        Step('patch pod web -p \'{"spec":{"containers":null}}\''),
        Step('patch pod web -p \'{"spec":{"containers":{"name":"x"}}}\''),
        Step('patch pod web -p \'{"spec":"none"}\''),
        *(
            Step(f"patch pod web --type={kind} -p '{patch}'")
            for kind, patch in (
                ("strategic", '{"spec":{"containers":["x"]}}'),
                ("merge", '{"metadata":null}'),
                ("merge", '{"metadata":{"name":null}}'),
                ("merge", '{"spec":{"containers":["x"]}}'),
                ("merge", '{"status":{"phase":"Running"}}'),
            )
        ),
        Step("get configmap c -o jsonpath='{.data}'"),
    ],
}
