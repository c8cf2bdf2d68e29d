"""kubectl and the official Python client, unmodified, against a served cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from labkit.cluster.apiserver.server import ServerHandle

KUBECTL = Path(sys.executable).parent / "kubectl"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1.27"}]}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: "4"}
  conditions: [{type: Ready, status: "True"}]
"""


@pytest.fixture
def kubectl(server: ServerHandle, tmp_path: Path) -> Any:
    """Run kubectl; returns its output, or its error text when it fails."""

    def run(command: str, stdin: str | None = None) -> str:
        env = {**os.environ, "KUBECONFIG": str(server.kubeconfig_path), "HOME": str(tmp_path)}
        done = subprocess.run(
            [str(KUBECTL), *command.split()],
            input=stdin,
            capture_output=True,
            text=True,
            env=env,
            timeout=60,
            check=False,
        )
        return (
            done.stdout.strip() if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()}"
        )

    return run


def test_kubectl_deployment(kubectl: Any) -> None:
    """apply, apply again, change, scale, get, delete."""
    assert kubectl("apply -f -", DEPLOYMENT) == "deployment.apps/web created"
    assert kubectl("apply -f -", DEPLOYMENT) == "deployment.apps/web unchanged"
    assert kubectl("apply -f -", DEPLOYMENT.replace("1.27", "1.28")) == "deployment.apps/web configured"
    assert kubectl("scale deployment web --replicas=5") == "deployment.apps/web scaled"
    image = "{.spec.replicas}/{.spec.template.spec.containers[0].image}"
    assert kubectl(f"get deployment web -o jsonpath={image}") == "5/nginx:1.28"
    assert kubectl("get deploy").splitlines()[0].split() == [
        "NAME",
        "READY",
        "UP-TO-DATE",
        "AVAILABLE",
        "AGE",
    ]
    assert kubectl("delete deployment web") == 'deployment.apps "web" deleted from default namespace'


def test_kubectl_nodes(kubectl: Any) -> None:
    """cordon, taint, label, drain, wait, describe."""
    assert kubectl("apply -f -", NODE) == "node/n1 created"
    assert kubectl("wait --for=condition=Ready node/n1 --timeout=10s") == "node/n1 condition met"
    assert kubectl("cordon n1") == "node/n1 cordoned"
    assert kubectl("get node n1 --no-headers").split()[1] == "Ready,SchedulingDisabled"
    assert kubectl("taint nodes n1 k=v:NoSchedule") == "node/n1 tainted"
    assert kubectl("label node n1 disk=ssd") == "node/n1 labeled"
    assert kubectl("get nodes -l disk=ssd -o name") == "node/n1"
    assert "Taints:             k=v:NoSchedule" in kubectl("describe node n1")
    pod = '{"spec":{"nodeName":"n1","terminationGracePeriodSeconds":1}}'
    assert kubectl(f"run p --image=i --overrides={pod}") == "pod/p created"
    assert "node/n1 drained" in kubectl("drain n1 --force --timeout=30s")
    assert kubectl("get pods -o name") == ""
    assert kubectl("delete node n1") == 'node "n1" deleted'


def test_kubectl_typed_create(kubectl: Any) -> None:
    """The verbs that send protobuf."""
    assert kubectl("create namespace team") == "namespace/team created"
    assert kubectl("-n team create deployment d --image=i --replicas=2") == "deployment.apps/d created"
    assert kubectl("-n team create configmap c --from-literal=a=1") == "configmap/c created"
    assert kubectl("-n team create quota q --hard=pods=1") == "resourcequota/q created"
    assert kubectl("create priorityclass low --value=10") == "priorityclass.scheduling.k8s.io/low created"
    assert kubectl("-n team run a --image=i") == "pod/a created"
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in kubectl(
        "-n team run b --image=i"
    )
    assert kubectl("-n team get quota q -o jsonpath={.status.used.pods}") == "1"
    assert kubectl("auth can-i create pods") == "yes"
    assert kubectl("delete namespace team --timeout=30s") == 'namespace "team" deleted'
    assert kubectl("get namespace team").startswith("exit 1: Error from server (NotFound)")


def test_kubectl_server_side_apply(kubectl: Any) -> None:
    """apply --server-side, also of what client-side apply made; a conflict names the other manager."""
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '%s'}\n"
    assert kubectl("apply -f -", config % 1) == "configmap/c created"
    assert kubectl("apply --server-side -f -", config % 2) == "configmap/c serverside-applied"
    conflict = kubectl("apply --server-side --field-manager=other -f -", config % 3)
    assert 'conflict with "kubectl": .data.a' in conflict
    assert kubectl("apply --server-side --field-manager=other --force-conflicts -f -", config % 3) == (
        "configmap/c serverside-applied"
    )
    assert kubectl("get cm c -o jsonpath={.data.a}") == "3"
    assert kubectl("delete cm c") == 'configmap "c" deleted from default namespace'


def test_kubectl_explain_and_discovery(kubectl: Any) -> None:
    """explain reads OpenAPI, api-resources discovery; an unknown kind is told as such."""
    assert "FIELD: nodeName <string>" in kubectl("explain pod.spec.nodeName")
    assert "-required-" in kubectl("explain deployment.spec")
    resources = kubectl("api-resources --no-headers").splitlines()
    assert any(line.split()[:2] == ["priorityclasses", "pc"] for line in resources)
    assert "the server doesn't have a resource type" in kubectl("get foos")
    assert "v1.36.2" in kubectl("version")


def test_python_client(server: ServerHandle) -> None:
    """The official client: create, bind, watch, patch, dynamic client, exceptions."""
    import kubernetes
    from kubernetes import client, config, dynamic, watch

    api_client = config.new_client_from_config(str(server.kubeconfig_path))
    core = client.CoreV1Api(api_client)
    body = client.V1Pod(
        metadata=client.V1ObjectMeta(name="py"),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
    )
    created = core.create_namespaced_pod("default", body)
    assert created.status.phase == "Pending"
    target = client.V1ObjectReference(kind="Node", name="n1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="py"), target=target)
    core.create_namespaced_binding("default", binding, _preload_content=False)
    assert core.read_namespaced_pod("py", "default").spec.node_name == "n1"
    stream = watch.Watch().stream(
        core.list_pod_for_all_namespaces, field_selector="metadata.name=py", timeout_seconds=1
    )
    assert [(e["type"], e["object"].metadata.name) for e in stream] == [("ADDED", "py")]
    patched = core.patch_namespaced_pod("py", "default", {"metadata": {"labels": {"a": "b"}}})
    assert patched.metadata.labels["a"] == "b"
    with pytest.raises(kubernetes.client.ApiException) as e:
        core.read_namespaced_pod("nosuch", "default")
    assert (e.value.status, e.value.reason) == (404, "Not Found")
    nodes = dynamic.DynamicClient(api_client).resources.get(api_version="v1", kind="Node")
    assert nodes.get().items == []
    assert client.VersionApi(api_client).get_code().git_version == "v1.36.2"
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="l"),
        spec=client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15),
    )
    coordination = client.CoordinationV1Api(api_client)
    held = coordination.create_namespaced_lease("default", lease)
    coordination.replace_namespaced_lease("l", "default", held)
    core.delete_namespaced_pod("py", "default", grace_period_seconds=0)


def test_client_certificate(server: ServerHandle, tmp_path: Path) -> None:
    """A kubeconfig with the client certificate and no token -> the admin."""
    import json

    from kubernetes import client, config

    kubeconfig = json.loads(server.kubeconfig_path.read_text())
    del kubeconfig["users"][0]["user"]["token"]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig))
    api_client = config.new_client_from_config(str(path))
    review = client.AuthenticationV1Api(api_client).create_self_subject_review(client.V1SelfSubjectReview())
    assert review.status.user_info.username == "kubernetes-admin"
    assert "system:masters" in review.status.user_info.groups
