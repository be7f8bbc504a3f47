"""EC2's clients have the operations that the IAM documents permit, whole, and no other."""

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from botocore.session import Session

from activities.aws.clients import Clients
from activities.aws.service_models import EC2_OPERATIONS

REGION = "eu-north-1"


def shapes_of(operation: OperationModel) -> list[Shape]:
    """Every shape that its input and output consist of, to any depth."""
    found: dict[str, Shape] = {}
    left = [shape for shape in (operation.input_shape, operation.output_shape) if shape is not None]
    while left:
        shape = left.pop()
        if shape.name in found:
            continue
        found[shape.name] = shape
        if isinstance(shape, StructureShape):
            left.extend(shape.members.values())
        elif isinstance(shape, ListShape):
            left.append(shape.member)
        elif isinstance(shape, MapShape):
            left.extend((shape.key, shape.value))
    return list(found.values())


def test_an_ec2_client_has_the_permitted_operations_alone() -> None:
    client = Clients().shared("ec2", REGION)
    assert set(client.meta.service_model.operation_names) == EC2_OPERATIONS
    assert hasattr(client, "describe_instances")
    assert not hasattr(client, "create_vpc")


def test_a_permitted_operation_of_ec2_has_all_shapes_of_botocores_model() -> None:
    ours = Clients().shared("ec2", REGION).meta.service_model
    whole = Session().get_service_model("ec2")
    for name in EC2_OPERATIONS:
        names = sorted(shape.name for shape in shapes_of(ours.operation_model(name)))
        assert names == sorted(shape.name for shape in shapes_of(whole.operation_model(name)))


def test_paginators_and_waiters_of_permitted_operations_remain() -> None:
    client = Clients().shared("ec2", REGION)
    assert client.can_paginate("describe_instances")
    assert client.get_waiter("instance_running").name == "InstanceRunning"


def test_other_services_are_whole() -> None:
    assert set(Clients().shared("iam", REGION).meta.service_model.operation_names) == set(
        Session().get_service_model("iam").operation_names
    )
