"""The services' configuration files, and the layout of a deployment's OpenStack.

`settings/` has one file per service, rewritten at every `up`, since ports may change. In `clouds.yaml`, for clients,
`perdure` is a member of a project, `perdure-admin` the administrator. `faults/` has the active faults, one file per
service.

The weigher for failed builds is disabled: in Nova 34 it would send all servers to the one host without injected
failures. Without the service token Nova may not delete its ports, and servers hang in `deleting`.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from localcloud.openstack.programs import OpenStackPrograms
from localcloud.state import replace_file

APIS = ("keystone", "placement", "glance", "neutron", "nova")
REGION = "RegionOne"
PASSWORD = "perdure"  # noqa: S105 - of a cloud that listens on loopback only
CLOUD = "perdure"
ADMIN_CLOUD = "perdure-admin"
INSIDE = Path(__file__).with_name("inside")
HOST = "compute-1"

NOWHERE = dict.fromkeys(APIS, "http://127.0.0.1:9")
"""URLs for commands that use only the database."""

Section = dict[str, str]
_TEN_YEARS = str(10 * 365 * 86_400)


@dataclass(frozen=True)
class Layout:
    home: Path
    socket: Path
    urls: Mapping[str, str]

    @property
    def settings(self) -> Path:
        return self.home / "settings"

    @property
    def clouds(self) -> Path:
        return self.home / "clouds.yaml"


def write(layout: Layout, programs: OpenStackPrograms) -> None:
    for name in ("settings", "locks", "neutron", "nova", "images/staging", "images/tasks"):
        (layout.home / name).mkdir(parents=True, exist_ok=True)
    for name in ("tokens", "receipts", "credentials"):
        _ensure_keys(layout.home / "keys" / name)
    files = {
        "keystone.conf": _keystone(layout),
        "placement.conf": _placement(layout),
        "glance-api.conf": _glance(layout, programs),
        "neutron.conf": _neutron(layout, programs),
        "nova.conf": _nova(layout),
    }
    for name, sections in files.items():
        replace_file(layout.settings / name, _rendered(sections))
    # Nova looks for this file only beside nova.conf.
    shutil.copyfile(programs.environment / "etc/nova/api-paste.ini", layout.settings / "api-paste.ini")
    replace_file(layout.clouds, yaml.safe_dump({"clouds": clouds(layout)}, sort_keys=False))


def clouds(layout: Layout) -> dict[str, dict[str, object]]:
    return {CLOUD: _cloud(layout, CLOUD), ADMIN_CLOUD: _cloud(layout, "admin")}


def environment(layout: Layout, caller: Mapping[str, str]) -> dict[str, str]:
    foreign = ("OS_", "PYTHON", "VIRTUAL_ENV")
    inherited = {name: value for name, value in caller.items() if not name.startswith(foreign)}
    return {
        **inherited,
        **{f"OS_{name.upper()}_CONFIG_DIR": str(layout.settings) for name in APIS},
        "OS_NEUTRON_CONFIG_FILES": "neutron.conf",
        "PYTHONPATH": str(INSIDE),
        "PYTHONUNBUFFERED": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "PERDURE_OPENSTACK_HOME": str(layout.home),
        "PERDURE_OPENSTACK_DATABASE": str(layout.socket),
        "PERDURE_OPENSTACK_URLS": ",".join(f"{name}={url}" for name, url in layout.urls.items()),
        "PERDURE_OPENSTACK_PASSWORD": PASSWORD,
    }


def _ensure_keys(repository: Path) -> None:
    repository.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("0", "1"):
        if not (repository / name).exists():
            replace_file(repository / name, base64.urlsafe_b64encode(os.urandom(32)).decode())


def _keystone(layout: Layout) -> dict[str, Section]:
    return {
        "database": _database(layout, "keystone"),
        "fernet_tokens": {"key_repository": f"{layout.home}/keys/tokens"},
        "fernet_receipts": {"key_repository": f"{layout.home}/keys/receipts"},
        "credential": {"key_repository": f"{layout.home}/keys/credentials"},
        "token": {"expiration": "86400"},
        # Four rounds of hashing instead of twelve: otherwise each token for a password costs a third of a second.
        "identity": {"password_hash_rounds": "4"},
    }


def _placement(layout: Layout) -> dict[str, Section]:
    return {"placement_database": _database(layout, "placement"), **_shared(layout)}


def _glance(layout: Layout, programs: OpenStackPrograms) -> dict[str, Section]:
    images = layout.home / "images"
    return {
        "DEFAULT": {"enabled_backends": "file:file", "enabled_import_methods": "[]", "transport_url": "fake://"},
        "database": _database(layout, "glance"),
        "glance_store": {"default_backend": "file"},
        "file": {"filesystem_store_datadir": str(images)},
        "os_glance_staging_store": {"filesystem_store_datadir": str(images / "staging")},
        "os_glance_tasks_store": {"filesystem_store_datadir": str(images / "tasks")},
        "paste_deploy": {
            "flavor": "keystone",
            "config_file": str(programs.environment / "etc/glance/glance-api-paste.ini"),
        },
        **_shared(layout),
    }


def _neutron(layout: Layout, programs: OpenStackPrograms) -> dict[str, Section]:
    return {
        "DEFAULT": {
            "core_plugin": "ml2",
            "service_plugins": "perdure_openstack.network.Router",
            "transport_url": "fake://",
            "api_paste_config": str(programs.environment / "etc/neutron/api-paste.ini"),
            "state_path": str(layout.home / "neutron"),
            # There are no agents to schedule to.
            "network_auto_schedule": "false",
            "router_auto_schedule": "false",
            "dhcp_agent_notification": "false",
        },
        "database": _database(layout, "neutron"),
        "ml2": {
            "type_drivers": "flat,vxlan",
            "tenant_network_types": "vxlan",
            "mechanism_drivers": "every-host",
            "extension_drivers": "port_security",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vxlan": {"vni_ranges": "1:10000"},
        # Notifies Nova of floating IPs, so that a server's addresses follow within about a second.
        "nova": _as_admin(layout),
        **_shared(layout),
    }


def _nova(layout: Layout) -> dict[str, Section]:
    return {
        "DEFAULT": {
            "host": HOST,
            "my_ip": "127.0.0.1",
            "compute_driver": "perdure.Driver",
            "transport_url": "fake://",
            "state_path": str(layout.home / "nova"),
            # No agent reports plugged ports, so Nova must not wait.
            "vif_plugging_is_fatal": "false",
            "vif_plugging_timeout": "0",
            "service_down_time": _TEN_YEARS,
            # The fake hypervisor forgets its servers with its process; Nova must not take them for stopped or lost.
            "sync_power_state_interval": "-1",
            "running_deleted_instance_action": "noop",
        },
        "api_database": _database(layout, "nova_api"),
        "database": _database(layout, "nova"),
        "glance": {"region_name": REGION},
        "vnc": {"enabled": "false"},
        "filter_scheduler": {"build_failure_weight_multiplier": "0"},
        "placement": _as_admin(layout),
        "neutron": _as_admin(layout),
        "service_user": {**_as_admin(layout), "send_service_user_token": "true"},
        **_shared(layout),
    }


def _shared(layout: Layout) -> dict[str, Section]:
    return {
        "keystone_authtoken": {
            **_as_admin(layout),
            "www_authenticate_uri": layout.urls["keystone"],
            "service_token_roles_required": "true",
        },
        "oslo_concurrency": {"lock_path": f"{layout.home}/locks"},
        "oslo_messaging_notifications": {"driver": "noop"},
    }


def _as_admin(layout: Layout) -> Section:
    return {
        "auth_type": "password",
        "auth_url": f"{layout.urls['keystone']}/v3",
        "username": "admin",
        "password": PASSWORD,
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": REGION,
    }


def _database(layout: Layout, name: str) -> Section:
    return {"connection": f"mysql+pymysql://root@localhost/{name}?unix_socket={layout.socket}&charset=utf8mb3"}


def _cloud(layout: Layout, name: str) -> dict[str, object]:
    authentication = {
        "auth_url": f"{layout.urls['keystone']}/v3",
        "username": name,
        "password": PASSWORD,
        "project_name": name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    return {"auth": authentication, "region_name": REGION, "identity_api_version": "3"}


def _rendered(sections: dict[str, Section]) -> str:
    blocks = (
        "".join([f"[{section}]\n", *(f"{name} = {value}\n" for name, value in options.items())])
        for section, options in sections.items()
    )
    return "\n".join(blocks)
