"""The kubeconfig of a served cluster."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from labkit.cluster.apiserver.tls import Certificates, write_private
from labkit.errors import LabError


def write_kubeconfig(path: Path, url: str, token: str, certificates: Certificates | None) -> None:
    """A kubeconfig for this server alone. LabError when it cannot be written."""
    cluster: dict[str, Any] = {"server": url}
    user: dict[str, Any] = {"token": token}
    if certificates is not None:

        def data(file: Path) -> str:
            return base64.b64encode(file.read_bytes()).decode()

        cluster["certificate-authority-data"] = data(certificates.ca)
        user["client-certificate-data"] = data(certificates.admin_cert)
        user["client-key-data"] = data(certificates.admin_key)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "labkit", "cluster": cluster}],
        "users": [{"name": "labkit-admin", "user": user}],
        "contexts": [{"name": "labkit", "context": {"cluster": "labkit", "user": "labkit-admin"}}],
        "current-context": "labkit",
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON is YAML, and needs no library to write.
        write_private(path, json.dumps(config, indent=1).encode() + b"\n")
    except OSError as e:
        raise LabError(
            f"cannot write the kubeconfig {path}: {e.strerror}", hint="give --kubeconfig another path"
        ) from e
