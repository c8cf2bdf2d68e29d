"""CronJobs: their schedules, and what their controller makes of them in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from labkit import Lab
from labkit.cluster.cron import CronError, parse_schedule, zone_of

from tests.cluster.workloads import Json, get, lab, template

# Thursday.
START = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC).timestamp()


def following(schedule: str, count: int, zone: str | None = None, start: float = START) -> list[str]:
    """The next times, in the zone."""
    found: list[str] = []
    for _ in range(count):
        due = parse_schedule(schedule).next_after(start, zone_of(zone))
        if due is None:
            return found
        start = due
        found.append(datetime.fromtimestamp(start, zone_of(zone)).strftime("%a %m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", ["Thu 01-01 00:01", "Thu 01-01 00:02"]),
        ("*/20 * * * *", ["Thu 01-01 00:20", "Thu 01-01 00:40", "Thu 01-01 01:00"]),
        ("5/25 3 * * *", ["Thu 01-01 03:05", "Thu 01-01 03:30", "Thu 01-01 03:55", "Fri 01-02 03:05"]),
        ("10-12,1 0 * * *", ["Thu 01-01 00:01", "Thu 01-01 00:10", "Thu 01-01 00:11"]),
        ("0 0 * * SUN", ["Sun 01-04 00:00", "Sun 01-11 00:00"]),
        ("0 0 31 * *", ["Sat 01-31 00:00", "Tue 03-31 00:00"]),
        ("0 0 13 * fri", ["Fri 01-02 00:00", "Fri 01-09 00:00", "Tue 01-13 00:00"]),
        ("0 0 */5 * fri", ["Fri 01-16 00:00", "Fri 02-06 00:00"]),
        ("0 12 29 feb ?", ["Tue 02-29 12:00"]),
        ("@monthly", ["Sun 02-01 00:00", "Sun 03-01 00:00"]),
        ("@every 90s", ["Thu 01-01 00:02", "Thu 01-01 00:03"]),
        ("0 0 30 2 *", []),
    ],
)
def test_times_of_a_schedule(schedule: str, expected: list[str]) -> None:
    """Steps, ranges, lists, names; days of month and week together mean either, unless one is a star."""
    assert following(schedule, len(expected) or 1) == expected


def test_daylight_saving() -> None:
    """In the night that skips 02:30 there is no such time; in the one that repeats it there is a first one."""
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    assert following("30 2 * * *", 2, "Europe/Berlin", spring) == ["Mon 03-30 02:30", "Tue 03-31 02:30"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC).timestamp()
    assert following("30 2 * * *", 2, "Europe/Berlin", autumn) == ["Sun 10-25 02:30", "Mon 10-26 02:30"]
    assert following("0 9 * * *", 1, "Asia/Shanghai") == ["Thu 01-01 09:00"]


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "*/0 * * * *", "@often", "TZ=UTC * * * * *"])
def test_a_bad_schedule_says_why(text: str) -> None:
    """CronError with words, and no other exception."""
    with pytest.raises(CronError, match=r"\w"):
        parse_schedule(text)
    with pytest.raises(CronError, match="unknown time zone Nowhere"):
        zone_of("Nowhere")


def cron(run_seconds: str = "5", code: str = "0", schedule: str = "* * * * *", **spec: Any) -> Json:
    """A CronJob whose pods run that long."""
    pod = template(restartPolicy="Never")
    kubelet = "lab.kubernetes.io"
    pod["metadata"]["annotations"] = {f"{kubelet}/run-seconds": run_seconds, f"{kubelet}/exit-code": code}
    job = {"spec": {"template": pod, "backoffLimit": 0}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": job, **spec},
    }


def jobs(it: Lab) -> list[str]:
    """The jobs, oldest first."""
    return [j["metadata"]["name"] for j in it.client.list("Job")[0]]


def reasons(it: Lab) -> list[str]:
    """Reasons of the CronJob's events."""
    return [e["reason"] for e in it.client.list("Event")[0] if e["involvedObject"]["kind"] == "CronJob"]


def test_a_job_each_minute_and_a_short_history() -> None:
    """Three that succeeded stay; times and active jobs are in the status."""
    it = lab(cron())
    it.advance(61)
    assert len(jobs(it)) == 1
    status = get(it, "CronJob")["status"]
    assert [a["name"] for a in status["active"]] == jobs(it)
    job = get(it, "Job", jobs(it)[0])
    assert job["metadata"]["ownerReferences"][0]["controller"] is True
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == status["lastScheduleTime"]
    assert scheduled.endswith(":00Z")
    it.advance(240)
    assert len(jobs(it)) in (3, 4)
    status = get(it, "CronJob")["status"]
    assert status["lastSuccessfulTime"] > scheduled
    assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= set(reasons(it))


@pytest.mark.parametrize(
    ("policy", "running", "made"), [("Allow", 4, 4), ("Forbid", 1, 1), ("Replace", 1, 4)]
)
def test_concurrency(policy: str, running: int, made: int) -> None:
    """Jobs that take longer than a minute run together, hold the next back, or are replaced by it."""
    it = lab(cron("1000", concurrencyPolicy=policy))
    it.advance(245)
    assert len(get(it, "CronJob")["status"]["active"]) == len(jobs(it)) == running
    assert reasons(it).count("SuccessfulCreate") == made
    assert ("JobAlreadyActive" in reasons(it)) == (policy == "Forbid")


def test_suspension_and_missed_times() -> None:
    """While suspended nothing is made; afterwards only the last missed time counts, unless it is too long ago."""
    it = lab(cron(schedule="*/10 * * * *", suspend=True))
    it.advance(27 * 60)
    assert jobs(it) == []
    it.client.patch("CronJob", "web", "default", {"spec": {"startingDeadlineSeconds": 60}}, "merge")
    it.client.patch("CronJob", "web", "default", {"spec": {"suspend": False}}, "merge")
    it.advance(1)
    assert jobs(it) == []
    assert "MissSchedule" in reasons(it)
    it.client.patch("CronJob", "web", "default", {"spec": {"startingDeadlineSeconds": None}}, "merge")
    it.advance(1)
    assert len(jobs(it)) == 1
    it.advance(600)
    assert len(jobs(it)) == 2


def test_failed_jobs_are_forgotten_sooner() -> None:
    """One failed job is kept; deleting the CronJob takes the jobs along."""
    it = lab(cron(code="1"))
    it.advance(200)
    assert len(jobs(it)) in (1, 2)
    it.delete("CronJob", "web")
    it.advance(5)
    assert jobs(it) == []
    it.advance(130)
    assert jobs(it) == []
