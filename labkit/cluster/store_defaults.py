"""What the API fills in when a field is left out, by kind (spec 20 §8.6 for pods)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.cluster.store_autoscaling import autoscaler_defaults
from labkit.cluster.store_types import ResourceType
from labkit.cluster.store_validation_config import secret_data

Json = dict[str, Any]

DEFAULT_SCHEDULER = "default-scheduler"


def set_defaults(resource: ResourceType, obj: Json) -> None:
    """Fill in the defaults of the object's kind."""
    fill = _BY_KIND.get((resource.group, resource.kind))
    if fill is not None:
        fill(obj)


def _fill(target: Json, **values: Any) -> None:
    for key, value in values.items():
        if target.get(key) is None:
            target[key] = value


def pod_spec_defaults(spec: Json, *, template: bool) -> None:
    """Defaults of a pod spec; templates get fewer."""
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = DEFAULT_SCHEDULER
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            _container_defaults(container)
    for volume in spec.get("volumes") or ():
        _volume_defaults(volume)
    if template:
        return
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    host_network = bool(spec.get("hostNetwork"))
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            _requests_from_limits(container.get("resources"))
            if host_network:
                for port in container.get("ports") or ():
                    _fill(port, hostPort=port.get("containerPort"))
    _requests_from_limits(spec.get("resources"))


def _requests_from_limits(resources: Json | None) -> None:
    limits = resources.get("limits") if resources else None
    if not limits:
        return
    assert resources is not None
    requests = resources.get("requests")
    resources["requests"] = {**limits, **requests} if requests else dict(limits)


def _container_defaults(container: Json) -> None:
    _fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = (
            "Always" if _is_latest(str(container.get("image") or "")) else "IfNotPresent"
        )
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(key)) is not None:
            _probe_defaults(probe)
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            _fill(reference, apiVersion="v1")
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _http_defaults(handler)


def _is_latest(image: str) -> bool:
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _probe_defaults(probe: Json) -> None:
    _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _http_defaults(probe)
    if (grpc := probe.get("grpc")) is not None:
        _fill(grpc, service="")


def _http_defaults(handler: Json) -> None:
    if (get := handler.get("httpGet")) is not None:
        _fill(get, path="/", scheme="HTTP")


def _volume_defaults(volume: Json) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if (found := volume.get(source)) is not None:
            _fill(found, defaultMode=420)
    if (host := volume.get("hostPath")) is not None:
        _fill(host, type="")
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        if item.get("fieldRef"):
            _fill(item["fieldRef"], apiVersion="v1")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            _fill(token, expirationSeconds=3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            if item.get("fieldRef"):
                _fill(item["fieldRef"], apiVersion="v1")
    claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec")
    if claim is not None:
        _fill(claim, volumeMode="Filesystem")


def _pod(obj: Json) -> None:
    pod_spec_defaults(obj["spec"], template=False)


def _template(spec: Json) -> None:
    template = spec.get("template")
    if template and template.get("spec") is not None:
        pod_spec_defaults(template["spec"], template=True)


def _deployment(obj: Json) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, rollingUpdate={})
        _fill(strategy["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")


def _replica_set(obj: Json) -> None:
    _template(obj["spec"])
    _fill(obj["spec"], replicas=1)


def _replication_controller(obj: Json) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, replicas=1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        _fill(obj["metadata"], labels=dict(labels))


def _stateful_set(obj: Json) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, rollingUpdate={})
        _fill(strategy["rollingUpdate"], partition=0)
    _fill(spec, persistentVolumeClaimRetentionPolicy={})
    _fill(spec["persistentVolumeClaimRetentionPolicy"], whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        _fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        _fill(claim["spec"], volumeMode="Filesystem")
        _fill(claim["status"], phase="Pending")


def _daemon_set(obj: Json) -> None:
    spec = obj["spec"]
    _template(spec)
    _fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, rollingUpdate={})
        _fill(strategy["rollingUpdate"], maxUnavailable=1, maxSurge=0)


def _job_spec(spec: Json) -> None:
    template = spec.get("template")
    if template and template.get("spec") is not None:
        restart = template["spec"].get("restartPolicy")
        pod_spec_defaults(template["spec"], template=True)
        if not restart:
            template["spec"]["restartPolicy"] = "Always"
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(
        spec,
        parallelism=1,
        completionMode="NonIndexed",
        manualSelector=False,
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    _fill(spec, backoffLimit=2147483647 if spec.get("backoffLimitPerIndex") is not None else 6)
    if spec.get("podFailurePolicy") is not None and spec["podReplacementPolicy"] == "TerminatingOrFailed":
        spec["podReplacementPolicy"] = "Failed"


def _cron_job(obj: Json) -> None:
    spec = obj["spec"]
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    if (template := (job.get("template") or {}).get("spec")) is not None:
        pod_spec_defaults(template, template=True)
    _fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"


def _service(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    if spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)
    for port in spec.get("ports") or ():
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)


def _volume(obj: Json) -> None:
    _fill(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if (host := obj["spec"].get("hostPath")) is not None:
        _fill(host, type="")


def _claim(obj: Json) -> None:
    _fill(obj["spec"], volumeMode="Filesystem")
    if not obj["status"].get("phase"):
        obj["status"]["phase"] = "Pending"


def _storage_class(obj: Json) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(obj: Json) -> None:
    _fill(
        obj["spec"],
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
        volumeLifecycleModes=["Persistent"],
    )


def _secret(obj: Json) -> None:
    _fill(obj, type="Opaque")
    secret_data(obj)


def _limit_range(obj: Json) -> None:
    for item in (obj["spec"].get("limits")) or ():
        if item.get("type") != "Container":
            continue
        for source, target in (("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")):
            for name, amount in (item.get(source) or {}).items():
                item.setdefault(target, {}).setdefault(name, amount)


def _resource_claim_spec(spec: Json) -> None:
    for request in ((spec.get("devices") or {}).get("requests")) or ():
        for exact in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if exact is None:
                continue
            _fill(exact, allocationMode="ExactCount")
            if exact["allocationMode"] == "ExactCount":
                _fill(exact, count=1)


def _role_binding(obj: Json) -> None:
    if not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = "rbac.authorization.k8s.io"
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _network_policy(obj: Json) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        _fill(port, name="", protocol="TCP")


_BY_KIND: dict[tuple[str, str], Callable[[Json], None]] = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): lambda o: _template(o),
    ("", "ReplicationController"): _replication_controller,
    ("", "Service"): _service,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Secret"): _secret,
    ("", "LimitRange"): _limit_range,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaler_defaults,
    ("batch", "Job"): lambda o: _job_spec(o["spec"]),
    ("batch", "CronJob"): _cron_job,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("scheduling.k8s.io", "PriorityClass"): lambda o: _fill(o, preemptionPolicy="PreemptLowerPriority"),
    ("resource.k8s.io", "ResourceClaim"): lambda o: _resource_claim_spec(o["spec"]),
    ("resource.k8s.io", "ResourceClaimTemplate"): lambda o: _resource_claim_spec(o["spec"].get("spec") or {}),
    ("rbac.authorization.k8s.io", "RoleBinding"): _role_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _role_binding,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
}
