"""Describing, editing and raw requests: kubectl sessions that must read the same on both servers."""

from __future__ import annotations

import json
from typing import Any

from .objects import make_node, make_pod
from .transcripts import Step

Json = dict[str, Any]


def _text(*manifests: Json) -> str:
    return "\n---\n".join(json.dumps(manifest) for manifest in manifests)


def _of(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


_TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}
_DEPLOYMENT = _of(
    "apps/v1",
    "Deployment",
    "web",
    {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE},
)
_PDB = _of(
    "policy/v1", "PodDisruptionBudget", "b", {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
)
_SERVICE = _of("v1", "Service", "s", {"selector": {"app": "x"}, "ports": [{"port": 80}]})
WIDE_SESSIONS: dict[str, list[Step]] = {
    "describe all": [
        Step("create -f -", _text(make_node("n1", cpu="4"), _DEPLOYMENT, _PDB, _SERVICE)),
        *[Step(f"describe {k}") for k in ("nodes", "deploy", "pdb", "svc s", "ns default", "ns kube-system")],
        Step("create secret generic se --from-literal=a=b"),
        Step("describe secret se"),
        Step("get secret se -o yaml"),
        Step("get secrets"),
        Step("create sa robot"),
        Step("describe sa robot"),
        Step("get sa robot"),
        Step("create token robot --duration=10m -o jsonpath='{.kind}'"),
        Step("create role r --verb=get --resource=pods"),
        Step("describe role r"),
        Step("get roles"),
        Step("create rolebinding rb --role=r --user=u"),
        Step("describe rolebinding rb"),
        Step("get rolebindings -o wide"),
        Step("create clusterrole zz --verb=get --resource=pods"),
        Step("get clusterrole zz"),
        Step("describe clusterrole zz"),
        Step("create clusterrolebinding zzb --clusterrole=zz --group=g"),
        Step("get clusterrolebinding zzb -o wide"),
        Step("create ingress i --rule=foo.com/x=web:80"),
        Step("get ingress"),
        Step("describe ingress i"),
        Step("create job j --image=i"),
        Step("describe job j"),
        Step("get jobs -o wide"),
        Step("create cronjob cj --image=i --schedule='*/5 * * * *'"),
        Step("describe cj"),
        Step("get cj -o wide"),
        Step("create job k --from=cronjob/cj"),
        Step("get job k -o yaml"),
        Step("create pdb p2 --selector=app=y --max-unavailable=1"),
        Step("get pdb"),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "networking.k8s.io/v1",
                    "kind": "NetworkPolicy",
                    "metadata": {"name": "np"},
                    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
                }
            ),
        ),
        Step("get netpol"),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": {"name": "d.example.com"},
                    "spec": {},
                },
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": "n1"},
                    "spec": {
                        "drivers": [{"name": "d.example.com", "nodeID": "x", "allocatable": {"count": 3}}]
                    },
                },
                {
                    "apiVersion": "node.k8s.io/v1",
                    "kind": "RuntimeClass",
                    "metadata": {"name": "rc"},
                    "handler": "h",
                    "overhead": {"podFixed": {"cpu": "100m"}},
                },
            ),
        ),
        Step("get csidrivers,csinodes,runtimeclasses"),
        Step("describe csinode n1"),
        Step(
            'run ov --image=i --overrides=\'{"spec":{"runtimeClassName":"rc"}}\' --dry-run=server -o jsonpath=\'{.spec.overhead}\''
        ),
        Step(
            "create -f -",
            _text(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClass",
                    "metadata": {"name": "gpu"},
                    "spec": {"selectors": [{"cel": {"expression": "true"}}]},
                },
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim",
                    "metadata": {"name": "c"},
                    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
                },
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": "rs"},
                    "spec": {
                        "driver": "d.example.com",
                        "nodeName": "n1",
                        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                        "devices": [{"name": "g0"}],
                    },
                },
            ),
        ),
        Step("get deviceclasses,resourceclaims,resourceslices"),
        Step("describe resourceclaim c"),
        Step("get resourceclaim c -o yaml"),
        Step("get endpoints,endpointslices"),
        Step("get all"),
        Step("get controllerrevisions"),
        Step("get podtemplates"),
        Step("get rc"),
    ],
    "editing": [
        Step("create -f -", _text(_DEPLOYMENT, make_pod("web", labels={"a": "b"}))),
        Step("set image deploy/web main=x:2"),
        Step("set env deploy/web A=B"),
        Step("set resources deploy/web --limits=cpu=1,memory=1Gi"),
        Step("get deploy web -o jsonpath='{.spec.template.spec.containers}'"),
        Step("set selector svc/none a=b"),
        Step("set serviceaccount deploy/web robot"),
        Step("rollout history deploy/web"),
        Step("rollout pause deploy/web"),
        Step("rollout pause deploy/web"),
        Step("rollout resume deploy/web"),
        Step("rollout undo deploy/web"),
        Step("rollout status deploy/web --watch=false"),
        Step("rollout restart deploy/nosuch"),
        Step("label pods -l a=b x=y"),
        Step("label pods web x=z"),
        Step("label pods web 'bad key=1'"),
        Step("label pods web x=-bad-"),
        Step("annotate pods --all n=1"),
        Step("annotate pod web n-"),
        Step("label --overwrite pod web x=z --resource-version=1"),
        Step("scale deploy web --replicas=3 --current-replicas=9"),
        Step("scale deploy web --replicas=-1"),
        Step("scale deploy/web rs/none --replicas=1"),
        Step("autoscale deploy web --max=3 --cpu=50% --dry-run=server -o name"),
        Step("expose deploy web --port=80 --target-port=8080"),
        Step("get svc web -o yaml"),
        Step("expose deploy web --port=80"),
        Step("replace -f -", _text({**_DEPLOYMENT, "spec": {**_DEPLOYMENT["spec"], "replicas": 7}})),
        Step("get deploy web -o jsonpath='{.spec.replicas} {.metadata.generation}'"),
        Step("replace --force -f -", _text(make_pod("web"))),
        Step("apply -f -", _text(make_pod("other", labels={"none": "x"}))),
        Step("apply edit-last-applied pod/web -o name"),
        Step("apply view-last-applied pod/other"),
        Step("apply set-last-applied -f - --create-annotation", _text(make_pod("web"))),
        Step("create -f - --save-config", _text(make_pod("third"))),
        Step("delete pods -l none=x"),
        Step("delete pods --all --grace-period=0 --force"),
        Step("delete deploy,svc --all"),
        Step("get pods --field-selector=metadata.name=x"),
        Step("get pods --field-selector=bad"),
        Step("get pods -l 'a in b'"),
        Step("get pods -l a=b,"),
        Step("get nodes --field-selector=spec.taints=x"),
    ],
    "paging and raw": [
        Step("create -f -", _text(*[make_pod(f"p{i}") for i in range(7)])),
        Step("get pods --chunk-size=2"),
        Step("get pods --chunk-size=3 -o name"),
        Step("get --raw '/api/v1/pods?limit=x'"),
        Step("get --raw '/api/v1/pods?continue=garbage'"),
        Step("get --raw '/api/v1/pods?resourceVersion=x'"),
        Step("get --raw '/api/v1/pods?resourceVersionMatch=Exact'"),
        Step("get --raw '/api/v1/pods?resourceVersion=0&resourceVersionMatch=Exact'"),
        Step("get --raw '/api/v1/pods?resourceVersion=1&resourceVersionMatch=Foo'"),
        Step("get --raw '/api/v1/pods?watch=1&resourceVersion=x'"),
        Step("get --raw '/api/v1/pods?watch=1&sendInitialEvents=true'"),
        Step("get --raw '/api/v1/pods?fieldSelector=spec.x=1'"),
        Step("get --raw '/api/v1/pods?labelSelector=a%20b'"),
        Step("get --raw /api/v1/nosuch"),
        Step("get --raw /apis/none/v1"),
        Step("get --raw /nosuch"),
        Step("get --raw /apis/apps/v2/deployments"),
        Step("get --raw /api/v1/namespaces/default/nodes"),
        Step("get --raw /api/v1/nodes/x/status"),
        Step("get --raw /api/v1/namespaces/default/pods/p0/none"),
        Step("get --raw /api/v1/namespaces/default/pods/p0/status"),
        Step("get --raw /api/v1/namespaces/none/pods"),
        Step("delete --raw /api/v1/namespaces/default/pods/none"),
        Step("create --raw /api/v1/namespaces/default/pods -f -", "{"),
        Step("create --raw /api/v1/namespaces/default/pods -f -", "{}"),
        Step("create --raw /api/v1/namespaces/default/pods -f -", _text(make_node("n"))),
        Step(
            "create --raw /api/v1/namespaces/default/pods/p0/binding -f -",
            _text({"metadata": {"name": "p0"}}),
        ),
        Step(
            "create --raw /api/v1/namespaces/default/pods/p0/binding -f -",
            _text({"metadata": {"name": "p1"}, "target": {"name": "n"}}),
        ),
        Step(
            "create --raw /api/v1/namespaces/default/pods/p0/eviction -f -",
            _text({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p0"}}),
        ),
        Step(
            "create --raw /api/v1/namespaces/default/pods/p0/eviction -f -",
            _text({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p0"}}),
        ),
        Step("replace --raw /api/v1/namespaces/default/pods/p1 -f -", _text(make_pod("p2"))),
        Step("replace --raw /api/v1/namespaces/default/pods/p9 -f -", _text(make_pod("p9"))),
        Step("create --raw /api/v1/namespaces/default/pods/p1/scale -f -", "{}"),
    ],
}
