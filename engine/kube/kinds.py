"""The built-in kinds that Perdure reads or writes. They have no lifecycle here, so no area."""

from __future__ import annotations

from domain.identity import Kind

SECRET = Kind(name="Secret", group="", version="v1", plural="secrets", area="")
CONFIG_MAP = Kind(name="ConfigMap", group="", version="v1", plural="configmaps", area="")
NAMESPACE = Kind(name="Namespace", group="", version="v1", plural="namespaces", area="")
POD = Kind(name="Pod", group="", version="v1", plural="pods", area="")
EVENT = Kind(name="Event", group="", version="v1", plural="events", area="")
LEASE = Kind(name="Lease", group="coordination.k8s.io", version="v1", plural="leases", area="")

BUILT_IN = {kind.name: kind for kind in (SECRET, CONFIG_MAP, NAMESPACE, POD, EVENT, LEASE)}
