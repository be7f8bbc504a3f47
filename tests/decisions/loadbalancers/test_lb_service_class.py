"""Which Services an installation serves."""

from __future__ import annotations

import pytest
from lb_objects import INSTALLATION, service

from domain.loadbalancers.services.service_class import serves


@pytest.mark.parametrize(
    ("annotation", "field", "ours"),
    [
        ("", None, True),
        ("", "stackit.cloud/yawol", True),
        ("", "other", False),
        ("stackit.cloud/yawol", "other", True),
        ("other", "stackit.cloud/yawol", False),
    ],
)
def test_a_service_is_ours_by_its_class_and_the_annotation_counts_more(
    annotation: str, field: str | None, ours: bool
) -> None:
    of = service({"className": annotation}, spec={"loadBalancerClass": field})
    assert serves(INSTALLATION, of) is ours


def test_services_without_a_class_can_be_left_to_others() -> None:
    strict = INSTALLATION.model_copy(update={"unclassed": False, "classes": ("mine",)})
    assert not serves(strict, service())
    assert serves(strict, service(spec={"loadBalancerClass": "mine"}))
    assert not serves(strict, service(spec={"loadBalancerClass": "stackit.cloud/yawol"}))
