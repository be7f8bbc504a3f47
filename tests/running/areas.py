"""Which area a test belongs to, by the names of its folder and file: what progress and durations are counted by."""

from __future__ import annotations

from pathlib import PurePath

_LAYERS = ("decisions", "workflows", "temporal", "replay", "chaos")
_WORDS = {
    "claims": ("claim", "managed", "binder"),
    "3scale": ("threescale",),
    "accounts": ("account", "aws", "federated", "emulator"),
    "load balancers": ("lb", "load_balancers", "loadbalancer", "services", "os_", "openstack", "machine", "yawollet"),
    "instances": ("instance", "event"),
}


def area_of(path: PurePath) -> str:
    """The layer of a test that is not integration, else the product's area; `deployment` where it is none of them.

    Args:
        path: the test's file, relative to `tests/`.
    """
    if path.parts[0] in _LAYERS:
        return path.parts[0]
    name = "/".join(path.parts[1:])
    if "emulator" in name:
        return "accounts"
    return next((area for area, words in _WORDS.items() if any(word in name for word in words)), "deployment")
