"""The kinds that Perdure only reads or writes. They have no lifecycle, so no area."""

from __future__ import annotations

from functools import partial

from domain.identity import Kind

_read = partial(Kind, area="", lifecycle=False)
SECRET = _read(name="Secret", group="", version="v1", plural="secrets")
CONFIG_MAP = _read(name="ConfigMap", group="", version="v1", plural="configmaps")
NAMESPACE = _read(name="Namespace", group="", version="v1", plural="namespaces")
POD = _read(name="Pod", group="", version="v1", plural="pods")
NODE = _read(name="Node", group="", version="v1", plural="nodes", served=True)
EVENT = _read(name="Event", group="", version="v1", plural="events")
LEASE = _read(name="Lease", group="coordination.k8s.io", version="v1", plural="leases")
CUSTOM_RESOURCE_DEFINITION = _read(
    name="CustomResourceDefinition",
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
)
# A 3scale installation in the cluster; another operator creates it.
API_MANAGER = _read(name="APIManager", group="apps.3scale.net", version="v1alpha1", plural="apimanagers")
SELF_SUBJECT_ACCESS_REVIEW = _read(
    name="SelfSubjectAccessReview",
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
)
_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE = _read(name="ClusterRole", group=_RBAC, version="v1", plural="clusterroles")
CLUSTER_ROLE_BINDING = _read(name="ClusterRoleBinding", group=_RBAC, version="v1", plural="clusterrolebindings")

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
