"""The kubectl sessions that must read the same against labkit's API server and the real one."""

from __future__ import annotations

import json
from typing import Any

from .objects import make_node, make_pod, make_priority_class
from .transcripts import Step


def _text(*manifests: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
_NODES = _text(
    make_node("node-a", labels={"topology.kubernetes.io/zone": "z1"}),
    make_node("node-b", labels={"topology.kubernetes.io/zone": "z2"}, taints=[_TAINT]),
    make_node("node-c", unschedulable=True, labels={"node-role.kubernetes.io/control-plane": ""}),
)
_PODS = _text(
    make_pod("web", cpu="100m", memory="64Mi", labels={"app": "web", "tier": "front"}),
    make_pod("db", cpu="1", labels={"app": "db"}, nodeName="node-a"),
    make_pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
)
_PDB = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
_DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "main", "image": "nginx:1.27", "ports": [{"containerPort": 80}]}]
            },
        },
    },
}
_POD_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}
_ONE_TIME_TEMPLATE = {"spec": {**_POD_TEMPLATE["spec"], "restartPolicy": "Never"}}
_SELECTOR = {"matchLabels": {"app": "x"}}


def _of(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


_WORKLOADS = [
    _of("apps/v1", "ReplicaSet", "rs", {"selector": _SELECTOR, "template": _POD_TEMPLATE}),
    _of("apps/v1", "DaemonSet", "ds", {"selector": _SELECTOR, "template": _POD_TEMPLATE}),
    _of(
        "apps/v1",
        "StatefulSet",
        "ss",
        {"serviceName": "headless", "replicas": 2, "selector": _SELECTOR, "template": _POD_TEMPLATE},
    ),
    _of("batch/v1", "Job", "job", {"completions": 3, "parallelism": 2, "template": _ONE_TIME_TEMPLATE}),
    _of(
        "v1", "Service", "headless", {"clusterIP": "None", "selector": {"app": "x"}, "ports": [{"port": 80}]}
    ),
]
_STORAGE = {"resources": {"requests": {"storage": "1Gi"}}}
_VOLUMES = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "slow"},
        "provisioner": "example.com/slow",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    _of(
        "v1",
        "PersistentVolume",
        "disk",
        {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow",
            "hostPath": {"path": "/mnt"},
        },
    ),
    _of(
        "v1",
        "PersistentVolumeClaim",
        "data",
        {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow", **_STORAGE},
    ),
]
_LEASE = _of("coordination.k8s.io/v1", "Lease", "mine", {"holderIdentity": "me", "leaseDurationSeconds": 15})
_LIMITS = _of(
    "v1",
    "LimitRange",
    "limits",
    {"limits": [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}}]},
)
_EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "web.18ed0989662ddfb1", "namespace": "default"},
    "eventTime": "2026-01-01T00:00:00.123456Z",
    "type": "Warning",
    "reason": "FailedScheduling",
    "action": "Scheduling",
    "note": "0/3 nodes are available: 3 Insufficient cpu.",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-host",
    "regarding": {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "web"},
}


def _binding(pod: str, node: str) -> Step:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Step(f"create --raw /api/v1/namespaces/default/pods/{pod}/binding -f -", _text(body))


def _with_image(image: str) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(_DEPLOYMENT))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return changed


def _config_map(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}}


def _bad(**changes: Any) -> str:
    return _text({**make_pod("bad"), **changes})


SESSIONS: dict[str, list[Step]] = {
    "empty cluster": [
        Step("get nodes"),
        Step("get pods"),
        Step("get pods -A"),
        Step("get pods -n nosuch"),
        Step("get namespaces"),
        Step("get pods,deployments"),
        Step("get priorityclasses"),
        Step("get foos"),
        Step("get pod nosuch"),
        Step("get --raw /healthz"),
        Step("get --raw /readyz"),
        Step("delete pod nosuch"),
        Step("delete pod nosuch --ignore-not-found"),
    ],
    "nodes": [
        Step("apply -f -", _NODES),
        Step("apply -f -", _NODES),
        Step("get nodes"),
        Step("get nodes -o wide"),
        Step("get nodes --show-labels"),
        Step("get nodes -L topology.kubernetes.io/zone"),
        Step("get nodes -l topology.kubernetes.io/zone=z1 -o name"),
        Step("get nodes -l 'topology.kubernetes.io/zone in (z1,z2)' -o name"),
        Step("get nodes -l '!topology.kubernetes.io/zone' -o name"),
        Step("get nodes --field-selector spec.unschedulable=true -o name"),
        Step("get node node-b -o yaml"),
        Step("get nodes -o jsonpath='{.items[*].status.allocatable.cpu}'"),
        Step("get nodes --sort-by=.metadata.name -o custom-columns=N:.metadata.name,T:.spec.taints[*].key"),
        Step("cordon node-a"),
        Step("cordon node-a"),
        Step("get node node-a"),
        Step("uncordon node-a"),
        Step("taint nodes node-a k=v:NoSchedule"),
        Step("taint nodes node-a k=v:NoSchedule"),
        Step("taint nodes node-a k=w:NoSchedule --overwrite"),
        Step("get node node-a -o jsonpath='{.spec.taints}'"),
        Step("taint nodes node-a k-"),
        Step("taint nodes node-a k-"),
        Step("label node node-a disk=ssd"),
        Step("label node node-a disk=hdd"),
        Step("label node node-a disk=hdd --overwrite"),
        Step("label node node-a disk-"),
        Step("annotate node node-a note='hello world'"),
        Step("describe node node-b"),
        Step('patch node node-a -p \'{"spec":{"podCIDR":"10.1.0.0/24"}}\''),
        Step("delete node node-c"),
        Step("get nodes -o name"),
    ],
    "pods": [
        Step("apply -f -", _NODES),
        Step("apply -f -", _PODS),
        Step("get pods"),
        Step("get pods -o wide"),
        Step("get pods -A --show-labels"),
        Step("get pods -l app=web"),
        Step("get pods -l 'app notin (web)' -o name"),
        Step("get pods --field-selector spec.nodeName=node-a"),
        Step("get pods --field-selector spec.nodeName= -o name"),
        Step("get pods --field-selector status.phase=Pending,spec.schedulerName=default-scheduler -o name"),
        Step("get pods --field-selector spec.foo=bar"),
        Step("get pod web -o yaml"),
        Step("get pod db -o json"),
        Step("get pod gated -o yaml"),
        Step("describe pod web"),
        Step("describe pod gated"),
        _binding("web", "node-b"),
        _binding("web", "node-b"),
        _binding("gated", "node-b"),
        _binding("nosuch", "node-b"),
        Step("get pod web -o yaml"),
        Step("describe pod web"),
        Step("describe node node-a"),
        Step("label pod web tier=back --overwrite"),
        Step("annotate pod web a=b"),
        Step('patch pod web -p \'{"metadata":{"labels":{"x":"y"}}}\''),
        Step('patch pod web -p \'{"metadata":{"labels":{"x":"y"}}}\''),
        Step('patch pod web --type=merge -p \'{"metadata":{"labels":{"x":null}}}\''),
        Step('patch pod web --type=json -p \'[{"op":"add","path":"/metadata/labels/j","value":"1"}]\''),
        Step('patch pod web --type=json -p \'[{"op":"test","path":"/metadata/labels/j","value":"2"}]\''),
        Step('patch pod web -p \'{"spec":{"nodeName":"node-a"}}\''),
        Step('patch pod web -p \'{"spec":{"containers":[{"name":"main","image":"other"}]}}\''),
        Step('patch pod web --subresource=status -p \'{"status":{"phase":"Running","podIP":"10.0.0.7"}}\''),
        Step("get pods -o wide"),
        Step("get pod web --show-labels"),
        Step('patch pod gated --type=json -p \'[{"op":"remove","path":"/spec/schedulingGates/0"}]\''),
        Step("get pod gated"),
        Step("delete pod db"),
        Step("delete pod web gated --force --grace-period=0"),
        Step("get pods"),
    ],
    "graceful deletion": [
        Step("apply -f -", _NODES),
        Step('run slow --image=busybox --restart=Never --overrides=\'{"spec":{"nodeName":"node-a"}}\''),
        Step("run fast --image=busybox"),
        Step("get pod slow -o yaml"),
        Step("delete pod slow --wait=false"),
        Step("get pods"),
        Step("get pod slow -o jsonpath='{.metadata.deletionGracePeriodSeconds} {.metadata.generation}'"),
        Step("delete pod fast"),
        Step("delete pod slow --now --wait=false"),
        Step("delete pod slow --force"),
        Step("get pods"),
    ],
    "deployments": [
        Step("apply -f -", _text(_DEPLOYMENT)),
        Step("apply -f -", _text(_DEPLOYMENT)),
        Step("apply -f -", _text(_with_image("nginx:1.28"))),
        Step("get deployments"),
        Step("get deployment web -o wide"),
        Step("get deployment web -o yaml"),
        Step("get deploy/web -o jsonpath='{.metadata.generation} {.spec.strategy}'"),
        Step("scale deployment web --replicas=5"),
        Step("get deploy web"),
        Step("create deployment made --image=nginx --replicas=2"),
        Step("get deployment made -o yaml"),
        Step("create deployment made --image=nginx"),
        Step("set image deployment/made nginx=nginx:2"),
        Step("get all"),
        Step("delete deployment web made"),
        Step("get deployments"),
    ],
    "other kinds": [
        Step("create -f -", _text(make_priority_class("high", 1000, description="for the urgent"))),
        Step("create priorityclass low --value=10"),
        Step("create priorityclass top --value=2000000000"),
        Step("get priorityclasses"),
        Step("get pc high -o yaml"),
        Step("create -f -", _text(make_pod("urgent", priorityClassName="high"))),
        Step("get pod urgent -o jsonpath='{.spec.priority} {.spec.preemptionPolicy} {.status.qosClass}'"),
        Step("create -f -", _text(make_pod("lost", priorityClassName="nosuch"))),
        Step("create -f -", _text(_PDB)),
        Step("get pdb"),
        Step("get pdb web -o jsonpath='{.spec}'"),
        Step("create configmap settings --from-literal=a=1 --from-literal=b=2"),
        Step("get configmap settings -o yaml"),
        Step("create namespace team"),
        Step("get namespace team -o yaml"),
        Step("create namespace team"),
        Step("-n team run p --image=i --dry-run=server"),
        Step("-n team get pods"),
        Step("-n team run p --image=i"),
        Step("get pods -A"),
        Step("-n nosuch run p --image=i"),
        Step("delete namespace default"),
        Step("delete priorityclass high low"),
        Step("delete pdb web"),
        Step("delete configmap settings"),
    ],
    "workloads and volumes": [
        Step("create -f -", _text(*_WORKLOADS)),
        Step("get replicasets,statefulsets,daemonsets,jobs,cronjobs"),
        Step("get replicasets,statefulsets -o wide"),
        Step("get services headless -o yaml"),
        Step("get replicaset rs -o yaml"),
        Step("get statefulset ss -o yaml"),
        Step("get job job -o yaml"),
        Step("get daemonset ds -o yaml"),
        Step("scale statefulset ss --replicas=0"),
        Step("rollout status deployment nosuch --watch=false"),
        Step("create -f -", _text(*_VOLUMES)),
        Step("get storageclasses,persistentvolumes,persistentvolumeclaims"),
        Step("get pv disk -o yaml"),
        Step("get pvc data -o yaml"),
        Step("get sc slow -o yaml"),
        Step("describe pvc data"),
        Step("create quota small --hard=pods=1"),
        Step("get quota small -o jsonpath='{.spec}'"),
        Step("create serviceaccount robot"),
        Step("create -f -", _text(_LEASE)),
        Step("get leases"),
        Step("create -f -", _text(_LIMITS)),
        Step("run limited --image=i"),
        Step("get pod limited -o jsonpath='{.spec.containers[0].resources}'"),
        Step("delete rs rs"),
    ],
    "apply and replace": [
        Step("apply -f - --dry-run=server", _text(make_pod("web", labels={"a": "1"}))),
        Step("get pods"),
        Step("apply -f -", _text(make_pod("web", labels={"a": "1"}))),
        Step("apply -f -", _text(make_pod("web", labels={"a": "2", "b": "3"}))),
        Step("get pod web --show-labels"),
        Step("apply -f -", _text(make_pod("web", labels={"b": "3"}))),
        Step("get pod web --show-labels"),
        Step("apply -f -", _text(make_pod("web", cpu="2", labels={"b": "3"}))),
        Step("create -f -", _text(make_pod("web"))),
        Step("replace -f -", _text(make_pod("nosuch"))),
        Step("replace -f -", _text({**_DEPLOYMENT, "metadata": {"name": "none"}})),
        Step("delete -f -", _text(make_pod("web"))),
        Step("delete -f -", _text(make_pod("web"))),
        Step("apply --server-side -f -", _text(_config_map("1"))),
        Step("apply --server-side -f -", _text(_config_map("2"))),
        Step("get configmap c -o jsonpath='{.data}'"),
    ],
    "mistakes": [
        Step("create -f -", _bad(metadata={"name": "Bad_Name"})),
        Step("create -f -", _bad(metadata={})),
        Step("create -f -", _bad(spec={"containers": []})),
        Step("create -f -", _bad(spec={"containers": [{"name": "c", "image": "i", "bogus": 1}]})),
        Step(
            "create -f - --validate=false",
            _bad(spec={"containers": [{"name": "c", "image": "i", "bogus": 1}]}),
        ),
        Step("create -f -", _bad(spec={"containers": "none"}, metadata={"name": "typed"})),
        Step("create -f -", _text(make_pod("bad-quantity", cpu="lots"))),
        Step("create -f -", _text({"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "x"}})),
        Step(
            "create -f -", _text({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}})
        ),
        Step("create -f -", "a: [1"),
        Step("create -f - --namespace=other", _text(make_pod("elsewhere"))),
        Step("create -f -", _text(make_node("bad-taint", taints=[{"key": "k", "effect": "Never"}]))),
        Step(
            "create -f -",
            _text(make_pod("bad-toleration", tolerations=[{"operator": "Exists", "value": "v"}])),
        ),
        Step("create -f -", _text(make_pod("bad-request", cpu="-1"))),
        Step("create -f -", _text(make_pod("bad-label", labels={"a b": "c"}))),
        Step("get pods -l 'a==b==c'"),
        Step("patch pod bad -p '{'"),
        Step("patch pod nosuch -p '{}'"),
        Step("scale deployment nosuch --replicas=1"),
        Step("taint nodes nosuch a=b:NoSchedule"),
        Step("cordon nosuch"),
        Step("describe pod nosuch"),
        Step("label pods --all a=b"),
    ],
    "events": [
        Step("create -f -", _text(make_pod("web"))),
        Step("create --raw /apis/events.k8s.io/v1/namespaces/default/events -f -", _text(_EVENT)),
        Step("get events"),
        Step("get events -o wide"),
        Step("get events --field-selector involvedObject.name=web,type=Warning -o name"),
        Step("get events --field-selector reason=Scheduled"),
        Step("events"),
        Step("events --for pod/web"),
        Step("describe pod web"),
    ],
    "eviction": [
        Step("apply -f -", _NODES),
        Step("apply -f -", _text(make_pod("web", labels={"app": "web"}, nodeName="node-a"), _PDB)),
        Step('patch pod web --subresource=status -p \'{"status":{"phase":"Running"}}\''),
        Step("drain node-a"),
        Step("get node node-a"),
        Step("delete pdb web"),
        Step("drain node-a --force"),
        Step("get pods"),
        Step("uncordon node-a"),
    ],
    "waiting": [
        Step("create -f -", _text(make_pod("web"), make_node("node-a"))),
        Step("wait --for=condition=Ready node/node-a --timeout=5s"),
        Step("wait --for=condition=PodScheduled pod/web --timeout=1s"),
        Step("wait --for=jsonpath='{.status.phase}'=Pending pod/web --timeout=5s"),
        _binding("web", "node-a"),
        Step("wait --for=condition=PodScheduled pod/web --timeout=5s"),
        Step("delete pod web --wait=false"),
        Step("wait --for=delete pod/web --timeout=5s"),
    ],
    "who am I": [
        Step("auth can-i create pods"),
        Step("auth can-i '*' '*'"),
        Step("auth whoami -o name"),
        Step("version"),
        Step("top nodes"),
        Step("cluster-info"),
    ],
}
