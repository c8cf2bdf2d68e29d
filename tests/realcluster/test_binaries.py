"""Where the harness looks for the real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .binaries import BinariesError, find_binaries


def test_assets_directory_without_a_way_to_complete_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBEBUILDER_ASSETS without kube-scheduler, no Go -> an error naming both; without either -> None."""
    for tool in ("etcd", "kube-apiserver"):
        (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(f"{find_binaries.__module__}.find_go", lambda: None)
    with pytest.raises(BinariesError, match=f"KUBEBUILDER_ASSETS={tmp_path} has no kube-scheduler"):
        find_binaries()
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    assert find_binaries() is None


def test_complete_assets_directory_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBEBUILDER_ASSETS with all three programs -> exactly these paths, whatever the cache holds."""
    for tool in ("etcd", "kube-apiserver", "kube-scheduler"):
        (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    found = find_binaries()
    assert found is not None
    assert {found.etcd.parent, found.kube_apiserver.parent, found.kube_scheduler.parent} == {tmp_path}
