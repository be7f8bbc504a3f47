"""The built-in kinds that Perdure reads or writes. They have no lifecycle here, so no area."""

from __future__ import annotations

from domain.identity import Kind

SECRET = Kind(name="Secret", group="", version="v1", plural="secrets", area="")
CONFIG_MAP = Kind(name="ConfigMap", group="", version="v1", plural="configmaps", area="")
NAMESPACE = Kind(name="Namespace", group="", version="v1", plural="namespaces", area="")
POD = Kind(name="Pod", group="", version="v1", plural="pods", area="")
NODE = Kind(name="Node", group="", version="v1", plural="nodes", area="", served=True)
EVENT = Kind(name="Event", group="", version="v1", plural="events", area="")
LEASE = Kind(name="Lease", group="coordination.k8s.io", version="v1", plural="leases", area="")
CUSTOM_RESOURCE_DEFINITION = Kind(
    name="CustomResourceDefinition",
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    area="",
)
# Runs a 3scale in the cluster; made by another operator, and read where it is installed.
API_MANAGER = Kind(name="APIManager", group="apps.3scale.net", version="v1alpha1", plural="apimanagers", area="")
_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE = Kind(name="ClusterRole", group=_RBAC, version="v1", plural="clusterroles", area="")
CLUSTER_ROLE_BINDING = Kind(name="ClusterRoleBinding", group=_RBAC, version="v1", plural="clusterrolebindings", area="")

BUILT_IN = {
    kind.name: kind
    for kind in (
        SECRET,
        CONFIG_MAP,
        NAMESPACE,
        POD,
        NODE,
        EVENT,
        LEASE,
        CUSTOM_RESOURCE_DEFINITION,
        CLUSTER_ROLE,
        CLUSTER_ROLE_BINDING,
    )
}
