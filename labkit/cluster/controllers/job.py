"""Job: `completions` pods that succeed, `parallelism` of them at a time, `backoffLimit` failures at most."""

from __future__ import annotations

from labkit.cluster.controllers.pods import condition, ended_at, is_active, is_ready, phase, pod_from
from labkit.cluster.controllers.world import Controller, Json, Key, key_of
from labkit.cluster.store_times import format_time, seconds_of

SOURCE = "job-controller"
#: Seconds after the first failure, doubled with each further one.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 10.0, 600.0


class JobController(Controller):
    """Non-indexed and Indexed jobs, suspension, deadlines and removal after `ttlSecondsAfterFinished`."""

    kinds = ("Job", "Pod")

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A job, or a pod of one."""
        if kind == "Pod":
            self.mark_owner("Job", (old, new))
        elif new is not None:
            self.mark(key_of(new))

    def reconcile(self, key: Key) -> None:
        """Pods, then status."""
        job = self.world.get("Job", key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        spec, status = job["spec"], job.get("status") or {}
        done = next((c for c in status.get("conditions") or () if c["type"] in ("Complete", "Failed")), None)
        pods = self.world.owned(job, "Pod")
        active = [p for p in pods if is_active(p)]
        if done is not None and done.get("status") == "True":
            self._finished(job, done)
            return
        if spec.get("suspend"):
            for pod in active:
                self.world.delete(pod)
            self.world.set_status(job, {"active": None, "ready": 0, "startTime": None})
            return
        started = status.get("startTime") or self.world.time()
        succeeded = [p for p in pods if phase(p) == "Succeeded"]
        failed = sum(phase(p) == "Failed" for p in pods)
        wanted = spec.get("completions")
        limit = spec.get("backoffLimit")
        reason = self._failure(job, failed, 6 if limit is None else int(limit), started)
        enough = bool(succeeded) and not active if wanted is None else len(succeeded) >= int(wanted)
        if reason or enough:
            for pod in active:
                self.world.delete(pod)
            self._end(job, started, len(succeeded), failed, reason)
            return
        missing = self._missing(job, active, succeeded)
        wait = self._back_off(pods) if missing else 0.0
        if wait > 0:
            self.mark_later(key, wait)
            missing = []
        for index in missing:
            self._create(job, index)
        for pod in active[max(0, int(spec.get("parallelism", 1))) :]:
            self.world.delete(pod)
        # Pods that were created just now are counted when their news arrive.
        self.world.set_status(
            job,
            {
                "startTime": started,
                "active": len(active) or None,
                "ready": sum(map(is_ready, active)),
                "succeeded": len(succeeded) or None,
                "failed": failed or None,
            },
        )

    def _missing(self, job: Json, active: list[Json], succeeded: list[Json]) -> list[int | None]:
        spec = job["spec"]
        parallel, wanted = int(spec.get("parallelism", 1)), spec.get("completions")
        if wanted is None:
            # A work queue: nobody new once one of them has said that the queue is empty.
            return [None] * (0 if succeeded else max(0, parallel - len(active)))
        room = max(0, min(parallel, int(wanted) - len(succeeded)) - len(active))
        if spec.get("completionMode") != "Indexed":
            return [None] * room
        taken = {_index(p) for p in (*active, *succeeded)}
        free = [i for i in range(int(wanted)) if i not in taken]
        return list(free[:room])

    def _back_off(self, pods: list[Json]) -> float:
        """Seconds until pods that failed one after the other may be followed by the next."""
        ended = sorted((e, phase(p)) for p in pods if (e := ended_at(p)) is not None)
        streak = 0
        for _, how in reversed(ended):
            if how != "Failed":
                break
            streak += 1
        if not streak:
            return 0.0
        wait: float = min(_FIRST_BACK_OFF * 2.0 ** (streak - 1), _LONGEST_BACK_OFF)
        return ended[-1][0] + wait - self.world.now

    def _create(self, job: Json, index: int | None) -> None:
        meta = job["metadata"]
        name, uid = meta["name"], meta["uid"]
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        pod = pod_from(job["spec"]["template"], job, labels=labels)
        if index is not None:
            key = "batch.kubernetes.io/job-completion-index"
            pod["metadata"]["generateName"] = f"{name}-{index}-"
            pod["metadata"]["labels"][key] = str(index)
            pod["metadata"].setdefault("annotations", {})[key] = str(index)
        made = self.world.client.create(pod)
        self.world.event(job, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}", SOURCE)

    def _failure(self, job: Json, failed: int, limit: int, started: str) -> tuple[str, str] | None:
        deadline = job["spec"].get("activeDeadlineSeconds")
        if failed > limit:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if deadline is not None:
            left = seconds_of(started) + float(deadline) - self.world.now
            if left <= 0:
                return "DeadlineExceeded", "Job was active longer than specified deadline"
            self.mark_later(key_of(job), left)
        return None

    def _end(
        self, job: Json, started: str, succeeded: int, failed: int, reason: tuple[str, str] | None
    ) -> None:
        now = self.world.time()
        if reason is None:
            why, text = "CompletionsReached", "Reached expected number of succeeded pods"
            kinds = ("SuccessCriteriaMet", "Complete")
            self.world.event(job, "Completed", "Job completed", SOURCE)
        else:
            why, text = reason
            kinds = ("FailureTarget", "Failed")
            self.world.event(job, why, text, SOURCE, "Warning")
        conditions = [condition(kind, True, why, text, now, None, "lastProbeTime") for kind in kinds]
        self.world.set_status(
            job,
            {
                "startTime": started,
                "completionTime": now if reason is None else None,
                "active": None,
                "ready": 0,
                "succeeded": succeeded or None,
                "failed": failed or None,
                "conditions": conditions,
            },
        )

    def _finished(self, job: Json, done: Json) -> None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ended = done.get("lastTransitionTime") or format_time(self.world.now)
        left = seconds_of(ended) + float(ttl) - self.world.now
        if left > 0:
            self.mark_later(key_of(job), left)
        else:
            self.world.delete(job, propagation="Background")


def _index(pod: Json) -> int:
    labels = pod["metadata"].get("labels") or {}
    return int(labels.get("batch.kubernetes.io/job-completion-index", "-1"))
