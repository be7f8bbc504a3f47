"""The AWS account of a cluster's machines, as far as the cluster's identity shows it.

    AWSMachine --cluster--> AWSCluster, AWSManagedControlPlane --identityRef--> AWSClusterRoleIdentity --> roleARN

If the cluster uses the provider's own credentials (`AWSClusterControllerIdentity`, the default) or static keys, the
account stays unknown. It also stays unknown if Perdure may not list these kinds.
"""

from __future__ import annotations

from domain.instances import AWS_CLUSTER, AWS_CLUSTER_ROLE_IDENTITY, AWS_MANAGED_CONTROL_PLANE
from domain.instances.arns import parse_arn
from domain.instances.constants import CLUSTER_LABEL
from domain.instances.resources import AWSMachine, Node
from engine.kube.informer_cache import Mirror, Store
from engine.kube.json import JsonObject, sequence, text
from engine.kube.reflector import Followed, Name

CLUSTER_KINDS = (AWS_CLUSTER, AWS_MANAGED_CONTROL_PLANE)


class ClusterAccounts:
    def __init__(self, store: Store) -> None:
        self._identities = store.follow(Followed(AWS_CLUSTER_ROLE_IDENTITY))
        self._clusters = tuple(store.follow(Followed(kind), {"cluster": cluster_names}) for kind in CLUSTER_KINDS)

    def account_of(self, machine: AWSMachine | Node) -> str:
        """The machine's account; empty if it is unknown, or if the cluster's objects name several accounts."""
        if isinstance(machine, Node):
            return ""
        cluster = (machine.metadata.namespace, machine.cluster)
        accounts = {self._account(obj) for mirror in self._clusters for obj in mirror.find("cluster", cluster)}
        return accounts.pop() if len(accounts) == 1 else ""

    def _account(self, cluster: JsonObject) -> str:
        return account_of_role(role_of(cluster, self._identities))


def role_of(cluster: JsonObject, identities: Mirror) -> str:
    """The role of the cluster's identity, normally an ARN; empty if the identity is no role."""
    if text(cluster, "spec", "identityRef", "kind") != AWS_CLUSTER_ROLE_IDENTITY.name:
        return ""
    identity = identities.get("", text(cluster, "spec", "identityRef", "name"))
    return text(identity, "spec", "roleARN") if identity else ""


def account_of_role(role: str) -> str:
    arn = parse_arn(role)
    return arn.account if arn is not None else ""


def cluster_names(obj: JsonObject) -> set[Name]:
    owners = (each for each in sequence(obj, "metadata", "ownerReferences") if text(each, "kind") == "Cluster")
    names = {*(text(each, "name") for each in owners), text(obj, "metadata", "labels", CLUSTER_LABEL)}
    return {(text(obj, "metadata", "namespace"), name) for name in names if name}
