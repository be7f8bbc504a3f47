from __future__ import annotations

from domain.loadbalancers.resources import Infrastructure
from domain.model import Model


class ProjectReference(Model):
    """An OpenStack project, identified by its credentials Secret; `project_id` overrides the Secret's own project."""

    namespace: str
    secret: str
    project_id: str = ""

    @classmethod
    def of(cls, infrastructure: Infrastructure, namespace: str) -> ProjectReference:
        named = infrastructure.auth_secret_ref
        return cls(
            namespace=named.namespace or namespace, secret=named.name, project_id=infrastructure.project_id or ""
        )

    @property
    def where(self) -> str:
        return f"Secret {self.namespace}/{self.secret}"
