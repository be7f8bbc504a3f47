"""An installation whose resource claims are broken into: a pool, providers with a linked one, and what people do.

Each handle has two ConfigMaps: a lid, and a box (a chest, a crate) that is made when the lid is there. Boxes come from
a pool that holds one ahead, chests are made for each claim, and crates fill pools without claims. Cases follow
one another on one installation; each makes claims of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos_claims_oracle import POOLBOY, USERS, ClaimsOracle, Expected, Json, at
from chaos_cluster import until
from chaos_installation import Installation

from localcloud import services

# What was measured stays below 30 s on two cores; a slower machine is no violation.
SETTLE_SECONDS = 90.0
CLOCK_SECONDS = 3
SETTINGS = {
    "PERDURE_DRAIN": "2",
    "MANAGE_HANDLES_INTERVAL": str(CLOCK_SECONDS),  # of those alone whose templates depend on the clock
}
API_VERSION = "poolboy.gpte.redhat.com/v1"
POOL = "boxes"
# So many claims of earlier cases may exist.
MOST_LEFT = 20


class ClaimsLab(Installation):
    """The installation."""

    quiet_seconds = 0.7

    def __init__(self, state: Path) -> None:
        super().__init__(state, services.SERVERS, SETTINGS, ("worker", "--only", "claims"), reserve=True)
        self.expected = Expected()
        self.oracle = ClaimsOracle(self.cluster, self.workflows, self.worker.log)
        self._serial = 0
        self.cluster.create("namespaces", "", {"metadata": {"name": USERS}})
        self.cluster.create("namespaces", "", {"metadata": {"name": POOLBOY}})
        self.cluster.create("resourceproviders", POOLBOY, provider("lid", lid=True))
        for name in ("box", "chest", "crate", "clock"):
            self.cluster.create("resourceproviders", POOLBOY, provider(name))
        self.start()

    def fill(self) -> None:
        """The pool that all cases work with: one box ahead."""
        self.make_pool(POOL, 1)
        self.settle()

    def find_again(self) -> None:
        """After an `up`."""
        super().find_again()
        self.oracle = ClaimsOracle(self.cluster, self.workflows, self.worker.log)
        self.oracle.forget()

    # --- what people do ---

    def new_name(self, word: str) -> str:
        """A name that nothing has had."""
        self._serial += 1
        return f"{word}-{self._serial}"

    def claim(self, provider: str, name: str = "", **spec: Any) -> str:
        """Make a claim; its name."""
        name = name or self.new_name("claim")
        self.expected.claims[name] = "1"
        body = {"provider": {"name": provider}, **spec}
        self.cluster.create("resourceclaims", USERS, _object("ResourceClaim", name, body))
        return name

    def edit_claim(self, name: str, patch: Json) -> None:
        """Merge-patch a claim."""
        self.cluster.patch("resourceclaims", USERS, name, patch)

    def resize(self, name: str, size: str) -> None:
        """Change a parameter of a claim."""
        self.expected.claims[name] = size
        self.edit_claim(name, {"spec": {"provider": {"parameterValues": {"size": size}}}})

    def expire(self, name: str) -> None:
        """Ask for an end that is now."""
        del self.expected.claims[name]
        self.edit_claim(name, {"spec": {"lifespan": {"end": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}}})

    def label(self, name: str, **labels: str) -> None:
        """Put labels on a claim."""
        self.edit_claim(name, {"metadata": {"labels": labels}})

    def delete_claim(self, name: str) -> None:
        """Delete a claim."""
        del self.expected.claims[name]
        self.cluster.delete("resourceclaims", USERS, name)

    def delete_handle(self, claim: str) -> None:
        """Delete the handle of a claim, by hand."""
        del self.expected.claims[claim]
        self.cluster.delete("resourcehandles", POOLBOY, self.handle_of(claim))

    def handle_of(self, claim: str) -> str:
        """The name of the handle that the claim names."""
        return str(at(self.cluster.get("resourceclaims", USERS, claim), "status", "resourceHandle", "name") or "")

    def make_pool(self, name: str, size: int, provider: str = "box") -> None:
        """Create a ResourcePool."""
        self.expected.pools[name] = size
        spec = {"minAvailable": size, "provider": {"name": provider}}
        self.cluster.create("resourcepools", POOLBOY, _object("ResourcePool", name, spec))

    def delete_pool(self, name: str) -> None:
        """Delete a ResourcePool."""
        del self.expected.pools[name]
        self.cluster.delete("resourcepools", POOLBOY, name)

    def scale(self, pool: str, by: int) -> None:
        """Ask a pool for more handles, once."""
        self.expected.pools[pool] += by
        spec = {"count": by, "resourcePool": {"name": pool}}
        scaling = _object("ResourcePoolScaling", self.new_name("scaling"), spec)
        self.cluster.create("resourcepoolscalings", POOLBOY, scaling)

    def clear(self) -> None:
        """Leave nothing of earlier cases but the pool."""
        self.lift()
        for name in [*self.expected.claims]:
            self.delete_claim(name)
        for name in [name for name in self.expected.pools if name != POOL]:
            self.delete_pool(name)
        self.settle()

    def tidy(self) -> None:
        """The same when much has gathered."""
        if len(self.expected.claims) > MOST_LEFT or len(self.expected.pools) > 2:
            self.clear()

    # --- settling ---

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Wait until everything agrees; how many seconds it took."""
        return self.agree(seconds)

    def violations(self) -> list[str]:
        """See `Installation`."""
        return self.oracle.violations(self.expected)

    def story(self) -> str:
        """What each lifecycle says about itself."""
        texts = [self.command("list").stdout.decode()]
        for kind, plural, namespace in (
            ("ResourcePool", "resourcepools", POOLBOY),
            ("ResourceHandle", "resourcehandles", POOLBOY),
            ("ResourceClaim", "resourceclaims", USERS),
        ):
            for item in self.cluster.list(plural, namespace)[-4:]:
                texts.append(self.command("why", kind, f"{namespace}/{item['metadata']['name']}").stdout.decode())
        return "\n".join(texts)

    def audit(self) -> None:
        """`perdure audit claims` finds nothing."""
        audited = self.command("audit", "claims")
        assert audited.returncode == 0, (audited.stdout + audited.stderr).decode()

    def wake_all(self) -> None:
        """`perdure wake --all`, for every kind."""
        for kind in ("ResourcePool", "ResourceHandle", "ResourceClaim"):
            done = self.command("wake", kind, "--all")
            assert done.returncode == 0, done.stderr.decode()

    def await_worker(self) -> None:
        """Wait until the worker is ready."""
        self.worker.await_ready()

    def until_ready(self, names: list[str], seconds: float) -> None:
        """Wait until all of these claims are ready."""

        def ready() -> bool:
            found = self.oracle.look().claims
            return all(at(found.get(name), "status", "ready") is True for name in names)

        until(ready, f"{len(names)} claims ready", seconds)


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def provider(name: str, *, lid: bool = False) -> Json:
    """A provider of ConfigMaps; but for the lid itself they have a lid, which comes first."""
    size: Json = {"name": "size", "allowUpdate": True, "default": {"value": "1"}}
    definition: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": USERS, "generateName": f"{name}-"},
        "data": {"of": name} if lid else {"size": "{{ size }}"},
    }
    spec: Json = {
        "resourceName": name,
        "template": {"enable": True, "definition": definition},
        "override": {"data": {"guid": "{{ guid }}"}},
        "updateFilters": [{"pathMatch": "/data/(size|moment)", "allowedOps": ["replace"]}],
        "healthCheck": "data.guid is defined",
        "readinessCheck": "data.guid is defined",
    }
    if name == "clock":
        spec["override"] = {"data": {"guid": "{{ guid }}", "moment": "{{ now(True, '%H:%M:%S') }}"}}
    if not lid:
        spec["parameters"] = [size]
        spec["lifespan"] = {"default": "1h", "maximum": "4h", "relativeMaximum": "4h", "unclaimed": "8h"}
        spec["linkedResourceProviders"] = [
            {"name": "lid", "resourceName": "lid", "waitFor": "linked_resource_state.data.guid is defined"}
        ]
    return _object("ResourceProvider", name, spec)
