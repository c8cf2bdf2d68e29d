"""DefaultBinder (spec 10 §10.9)."""

from __future__ import annotations

from labkit.framework.cycle_state import CycleState
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class DefaultBinder(Plugin):
    """Posts a Binding for the pod; the UID makes the API server refuse a pod that was recreated meanwhile."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success, or Error with the API server's text. Never Skip."""
        client = self.handle.client if self.handle is not None else None
        if client is None:
            return Status.as_error_of("there is no cluster client to bind with")
        try:
            client.bind(pod.namespace, pod.name, pod.uid, node_name)
        except Exception as e:
            return Status.as_error_of(e)
        return None
