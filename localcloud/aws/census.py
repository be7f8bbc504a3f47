"""All resources of the emulated cloud by account and region, for tests to compare; reading creates no backend."""

from __future__ import annotations

from typing import Any

from moto.core.base_backend import BackendDict
from moto.iam.models import AWSManagedPolicy

from localcloud.aws import organizations, support
from localcloud.aws.contract import (
    AccountRecord,
    CaseRecord,
    CreationRecord,
    InstanceRecord,
    KeyRecord,
    QuotaRequestRecord,
    RegionRecord,
    ResourceRecord,
    RoleRecord,
    UnitRecord,
    World,
)


def take() -> World:
    """Requires moto's lock."""
    organization = organizations.of_payer()
    organization.let_time_pass()
    return World(
        root=organization.org.root_id if organization.org else "",
        accounts=tuple(_account(account) for account in organization.accounts),
        creations=tuple(_creation(creation) for creation in organization.creations.values()),
        units=tuple(UnitRecord(id=u.id, name=str(u.name), parent=u.parent_id) for u in organization.ou),
        instances=tuple(_instances()),
        keys=tuple(
            KeyRecord(account=account, user=user.name, id=key.access_key_id, active=key.status == "Active")
            for account, _region, iam in _backends("iam")
            for user in iam.users.values()
            for key in user.access_keys
        ),
        users=tuple(
            RoleRecord(account=account, name=user.name)
            for account, _region, iam in _backends("iam")
            for user in iam.users.values()
        ),
        roles=tuple(
            RoleRecord(account=account, name=role.name)
            for account, _region, iam in _backends("iam")
            for role in iam.roles.values()
        ),
        policies=tuple(
            RoleRecord(account=account, name=policy.name)
            for account, _region, iam in _backends("iam")
            for policy in iam.managed_policies.values()
            if not isinstance(policy, AWSManagedPolicy)
        ),
        cases=tuple(
            CaseRecord(account=account, id=case.id, subject=case.subject, status=case.status, created=case.created)
            for account, case in support.all_cases()
        ),
        quota_requests=tuple(
            QuotaRequestRecord(
                account=account,
                region=region,
                id=request.id,
                service=request.quota.service,
                code=request.quota.code,
                desired=request.desired,
                status=request.status,
                opened_at=request.opened_at,
                done_at=request.done_at,
            )
            for account, region, quotas in _backends("service-quotas")
            for request in quotas.requests.values()
        ),
        opt_in_regions=tuple(
            RegionRecord(
                account=account, region=region, enable=made.enable, asked_at=made.asked_at, done_at=made.done_at
            )
            for account, _region, backend in _backends("account")
            for region, made in backend.__dict__.get("region_choices", {}).items()
        ),
        buckets=tuple(
            ResourceRecord(account=account, region=bucket.region_name, id=name)
            for account, _region, s3 in _backends("s3")
            for name, bucket in s3.buckets.items()
        ),
        volumes=_resources("ec2", "volumes"),
        snapshots=_resources("ec2", "snapshots"),
        hosted_zones=_resources("route53", "zones"),
        endpoint_services=_resources("ec2", "configurations"),
    )


def _account(account: Any) -> AccountRecord:
    described = account.describe()
    return AccountRecord(
        id=account.id,
        name=account.name,
        email=account.email,
        status=account.status,
        state=account.state,
        parent=account.parent_id,
        created=described["JoinedTimestamp"],
        tags=dict(account.tags),
    )


def _creation(creation: organizations.Creation) -> CreationRecord:
    return CreationRecord(
        id=creation.id,
        name=creation.name,
        email=creation.email,
        state=creation.state,
        failure_reason=creation.failure_reason if creation.state == "FAILED" else None,
        account=creation.account_id,
        requested=creation.requested,
    )


def _instances() -> list[InstanceRecord]:
    return [
        InstanceRecord(
            account=account,
            region=region,
            id=instance.id,
            type=instance.instance_type,
            image=instance.image_id,
            state=instance.state,
            tags={tag["key"]: tag["value"] for tag in instance.get_tags()},
        )
        for account, region, ec2 in _backends("ec2")
        for reservation in ec2.all_reservations()
        for instance in reservation.instances
        if instance.state != "terminated"
    ]


def _resources(service: str, attribute: str) -> tuple[ResourceRecord, ...]:
    return tuple(
        ResourceRecord(account=account, region=region, id=identifier)
        for account, region, backend in _backends(service)
        for identifier in getattr(backend, attribute)
    )


def _backends(service: str) -> list[tuple[str, str, Any]]:
    instances: list[BackendDict[Any]] = list(getattr(BackendDict, "_instances"))  # noqa: B009 - generic class variable
    for backends in instances:
        if backends.service_name == service:
            found = [
                (account, region, backend)
                for account, regional in dict.items(backends)
                for region, backend in dict.items(regional)
            ]
            return sorted(found, key=lambda entry: entry[:2])
    return []
