from __future__ import annotations

from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.model import Model


class ProjectReference(Model):
    """An OpenStack project, identified by its credentials Secret; `project_id` overrides the Secret's own project."""

    namespace: str
    secret: str
    project_id: str = ""

    @classmethod
    def of(cls, resource: LoadBalancer | LoadBalancerMachine) -> ProjectReference:
        named, project_id = resource.spec.infrastructure.auth_secret_ref, resource.spec.infrastructure.project_id
        namespace = named.namespace or resource.metadata.namespace
        return cls(namespace=namespace, secret=named.name, project_id=project_id or "")

    @property
    def where(self) -> str:
        return f"Secret {self.namespace}/{self.secret}"
