"""What several files of decisions share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from os_cloud import SmallCloud

from activities.openstack.session import Project


@pytest.fixture
def cloud() -> Iterator[SmallCloud]:
    """OpenStack, as far as steps need it."""
    cloud = SmallCloud()
    yield cloud
    cloud.close()


@pytest.fixture
def project(cloud: SmallCloud) -> Iterator[Project]:
    """A client of its one project."""
    with closing(cloud.project()) as project:
        yield project
