"""The state directory's kubeconfig, if the user's own cluster is used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from localcloud import supervisor
from localcloud.state import Plan, StateDirectory


def placed(tmp_path: Path, text: str) -> StateDirectory:
    own = tmp_path / "home" / "config"
    own.parent.mkdir()
    own.write_text(text)
    state = StateDirectory(tmp_path / "state")
    state.root.mkdir()
    supervisor.prepare(state, Plan(clouds=(), services=(), binaries=None, kubeconfig=own), [])
    return state


def test_relative_paths_lead_to_the_same_files_from_the_state_directory(tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://c", "certificate-authority": "pki/ca.crt"}}],
        "users": [{"name": "u", "user": {"client-certificate": "/pki/u.crt", "client-key": "u.key", "tokenFile": ""}}],
    }
    state = placed(tmp_path, yaml.safe_dump(config))
    found = yaml.safe_load(state.kubeconfig.read_text())
    home = tmp_path / "home"
    assert found["clusters"][0]["cluster"]["certificate-authority"] == f"{home}/pki/ca.crt"
    assert found["users"][0]["user"] == {
        "client-certificate": "/pki/u.crt",
        "client-key": f"{home}/u.key",
        "tokenFile": "",
    }
    assert state.kubeconfig.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["users: [{name: u, user: {token: t, client-key: /u.key}}]", "", "a: [", "\0"])
def test_any_other_file_is_linked(text: str, tmp_path: Path) -> None:
    state = placed(tmp_path, text)
    assert state.kubeconfig.is_symlink()
    assert state.kubeconfig.read_text() == text
