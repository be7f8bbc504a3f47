from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_iam.type_defs import TagTypeDef


def tag_list(tags: Mapping[str, str]) -> list[TagTypeDef]:
    return [{"Key": name, "Value": value} for name, value in sorted(tags.items())]
