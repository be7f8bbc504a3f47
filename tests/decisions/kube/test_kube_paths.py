"""No request for an object leads to another object, to a subresource, or to all objects of the kind."""

from __future__ import annotations

from typing import Any, cast

import pytest

from engine.errors import Absent
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.api import path_of
from engine.kube.errors import NO_SUCH_KIND


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("users", ".."), ("users", "."), ("..", "it"), ("", ".."), ("users", "it/status"), ("", "%")],
)
def test_no_path_leads_out_of_its_object(namespace: str, name: str) -> None:
    with pytest.raises(Absent, match="cannot exist") as absent:
        path_of(CONFIG_MAP, namespace, name)
    assert absent.value.code != NO_SUCH_KIND
    assert path_of(CONFIG_MAP, "users", "a..b:c") == "/api/v1/namespaces/users/configmaps/a..b%3Ac"


async def test_an_object_without_a_name_is_not_there() -> None:
    """The path would be that of all objects: a deletion would delete them."""

    class NoServer(KubeApi):
        def __init__(self) -> None:
            self.operator_domain = "example.com"

    api = NoServer()
    requests: list[Any] = [
        api.get(CONFIG_MAP, "users", ""),
        api.delete(CONFIG_MAP, "users", "", uid="1"),
        api.json_patch(CONFIG_MAP, "users", "", []),
    ]
    for request in requests:
        with pytest.raises(Absent, match="without a name"):
            await cast(Any, request)
