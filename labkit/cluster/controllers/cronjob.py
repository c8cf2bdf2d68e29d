"""CronJob: makes a Job whenever its schedule says so, and clears finished ones away."""

from __future__ import annotations

import copy
from datetime import datetime, tzinfo

from labkit.cluster.controllers.pods import conditions_of
from labkit.cluster.controllers.world import Controller, Json, Key, World, key_of, owner_reference
from labkit.cluster.cron import CronError, Schedule, parse_schedule, zone_of
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_times import format_time, seconds_of

SOURCE = "cronjob-controller"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DAY = 86_400.0
_LOOK_BACK = (60.0, 3600.0, _DAY, 31 * _DAY, 5 * 366 * _DAY)


class CronJobController(Controller):
    """Allow, Forbid and Replace; deadlines, suspension, time zones, history limits. Of missed times the last counts."""

    kinds = ("CronJob", "Job")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        #: When each is looked at next: one timer each.
        self._due: dict[Key, float] = {}

    def observe(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A CronJob, or a Job of one."""
        if kind == "Job":
            self.mark_owner("CronJob", (old, new))
        elif new is not None:
            self.mark(key_of(new))
        elif old is not None:
            self._due.pop(key_of(old), None)

    def reconcile(self, key: Key) -> None:
        """What has ended, then what is due, then what is to be forgotten."""
        obj = self.world.get("CronJob", key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        jobs = self.world.owned(obj, "Job")
        status = dict(obj.get("status") or {})
        self._ended(obj, jobs, status)
        try:
            if not obj["spec"].get("suspend"):
                self._start(obj, jobs, status)
        finally:
            self._tell(obj, status)
        self._forget(obj, jobs)

    def _ended(self, obj: Json, jobs: list[Json], status: Json) -> None:
        by_uid = {job["metadata"]["uid"]: job for job in jobs}
        active = []
        for reference in status.get("active") or ():
            job = by_uid.get(reference.get("uid"))
            how = _finish(job) if job is not None else ""
            if job is not None and not how:
                active.append(reference)
            elif job is not None:
                note = f"Saw completed job: {job['metadata']['name']}, condition: {how}"
                self.world.event(obj, "SawCompletedJob", note, SOURCE)
            else:
                self.world.event(
                    obj, "MissingJob", f"Active job went missing: {reference.get('name')}", SOURCE
                )
        done = [t for j in jobs if _finish(j) == "Complete" and (t := j["status"].get("completionTime"))]
        before = status.get("lastSuccessfulTime")
        newest = max([*done, *([before] if before else [])], key=seconds_of, default=None)
        status["active"] = active or None
        if newest is not None:
            status["lastSuccessfulTime"] = newest

    # --- starting -------------------------------------------------------------------------------------------

    def _start(self, obj: Json, jobs: list[Json], status: Json) -> None:
        spec, now = obj["spec"], self.world.now
        try:
            schedule, zone = parse_schedule(spec["schedule"]), zone_of(spec.get("timeZone"))
        except CronError as e:
            self.world.event(
                obj,
                "UnparseableSchedule",
                f"unparseable schedule: {spec['schedule']!r} : {e}",
                SOURCE,
                "Warning",
            )
            return
        since = seconds_of(status.get("lastScheduleTime") or obj["metadata"]["creationTimestamp"])
        due = _last_due(schedule, since, now, zone)
        coming = schedule.next_after((due or since) if schedule.every else now, zone)
        if coming is not None and self._due.get(key_of(obj)) != coming:
            self._due[key_of(obj)] = coming
            self.mark_later(key_of(obj), coming - now)
        if due is None:
            return
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and now - due > float(deadline):
            note = f"Missed scheduled time to start a job: {format_time(due)}"
            self.world.event(obj, "MissSchedule", note, SOURCE, "Warning")
            return
        policy = spec.get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and status.get("active"):
            note = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.world.event(obj, "JobAlreadyActive", note, SOURCE)
            return
        if policy == "Replace":
            for job in jobs:
                if not _finish(job):
                    self._delete(obj, job)
            status["active"] = None
        name = _job_name(obj, due)
        there = [j for j in jobs if j["metadata"]["name"] == name]
        meta = (there[0] if there else self._create(obj, name, datetime.fromtimestamp(due, zone)))["metadata"]
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name}
        reference |= {k: meta[k] for k in ("namespace", "resourceVersion", "uid")}
        status["active"] = [*(status.get("active") or ()), reference]
        status["lastScheduleTime"] = format_time(due)

    def _create(self, obj: Json, name: str, due: datetime) -> Json:
        template = obj["spec"]["jobTemplate"]
        meta = template.get("metadata") or {}
        stamp = due.isoformat(timespec="seconds").replace("+00:00", "Z")
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": obj["metadata"]["namespace"],
                "labels": dict(meta.get("labels") or {}),
                "annotations": {**(meta.get("annotations") or {}), _SCHEDULED: stamp},
                "ownerReferences": [owner_reference(obj)],
            },
            "spec": copy.deepcopy(template["spec"]),
        }
        try:
            made: Json = self.world.client.create(job)
        except ApiError as e:
            self.world.event(obj, "FailedCreate", f"Error creating job: {e.message}", SOURCE, "Warning")
            raise
        self.world.event(obj, "SuccessfulCreate", f"Created job {name}", SOURCE)
        return made

    def _delete(self, obj: Json, job: Json) -> None:
        self.world.delete(job, propagation="Background")
        self.world.event(obj, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}", SOURCE)

    # --- afterwards -----------------------------------------------------------------------------------------

    def _tell(self, obj: Json, status: Json) -> None:
        fields = ("active", "lastScheduleTime", "lastSuccessfulTime")
        self.world.set_status(obj, {f: status[f] for f in fields if f in status})

    def _forget(self, obj: Json, jobs: list[Json]) -> None:
        for how, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = obj["spec"].get(field)
            if limit is None:
                continue
            done = sorted((j for j in jobs if _finish(j) == how), key=_age)
            for job in done[: max(0, len(done) - int(limit))]:
                self._delete(obj, job)


def _last_due(schedule: Schedule, since: float, now: float, zone: tzinfo) -> float | None:
    """The last time in (since, now] that the schedule names. Further back is looked only when there is none nearer."""
    if schedule.every:
        times = int((now - since) // schedule.every)
        return since + times * schedule.every if times > 0 else None
    for seconds in _LOOK_BACK:
        start, found = max(since, now - seconds), None
        while (
            due := schedule.next_after(start if found is None else found, zone)
        ) is not None and due <= now:
            found = due
        if found is not None or start == since:
            return found
    return None


def _job_name(obj: Json, due: float) -> str:
    """The minute in the name: who has made this Job already cannot make it again."""
    return f"{obj['metadata']['name']}-{int(due) // 60}"


def _finish(job: Json) -> str:
    """`Complete`, `Failed`, or nothing while it goes on."""
    for kind in ("Complete", "Failed"):
        if conditions_of(job).get(kind, {}).get("status") == "True":
            return kind
    return ""


def _age(job: Json) -> tuple[float, str]:
    meta = job["metadata"]
    return seconds_of((job.get("status") or {}).get("startTime") or meta["creationTimestamp"]), meta["name"]
