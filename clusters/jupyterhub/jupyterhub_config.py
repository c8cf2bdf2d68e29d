"""A hub for one class: learners fetch and submit in JupyterLab, instructors have Formgrader as a service.

Change the names in the first lines. Sign-in is your own matter: the hub's default asks the machine's accounts (PAM).
"""

c = get_config()  # noqa: F821

COURSE = "scheduler-lab"
INSTRUCTORS = {"instructor"}
LEARNERS = {"ann", "bert"}
GRADER = "grader-scheduler-lab"  # an account of the machine; the course folder is its own, mode 0700
COURSE_FOLDER = f"/home/{GRADER}/{COURSE}"
FORMGRADER_PORT = 9999

c.Authenticator.allowed_users = INSTRUCTORS | LEARNERS | {GRADER}

# Learners' servers: the language of the lab, and room for a notebook and its checks.
c.Spawner.default_url = "/lab"
c.Spawner.environment = {"LABKIT_LANG": "en"}
c.Spawner.mem_limit = "1G"
c.Spawner.cpu_limit = 1

c.JupyterHub.load_groups = {
    f"formgrade-{COURSE}": {"users": sorted(INSTRUCTORS)},
    f"nbgrader-{COURSE}": {"users": sorted(LEARNERS)},
}

# Formgrader runs as the grader's account in the course folder; only instructors reach it.
c.JupyterHub.services = [
    {
        "name": COURSE,
        "url": f"http://127.0.0.1:{FORMGRADER_PORT}",
        "command": ["jupyterhub-singleuser"],  # reads nbgrader_config.py in `cwd`
        "user": GRADER,
        "cwd": COURSE_FOLDER,
        "environment": {"JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp"},
        "oauth_no_confirm": True,
    }
]
c.JupyterHub.load_roles = [
    {
        "name": f"formgrade-{COURSE}",
        "groups": [f"formgrade-{COURSE}"],
        "scopes": [f"access:services!service={COURSE}"],
    },
    {
        "name": f"formgrade-{COURSE}-service",
        "services": [COURSE],
        "scopes": [
            "list:users",
            "read:users:activity",
            "users:activity",
            f"access:services!service={COURSE}",
        ],
    },
]
