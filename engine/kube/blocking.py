"""The Kubernetes client for threads, such as boto3's pool.

Requests run on the process's event loop while the thread waits. A call on that loop would deadlock, so it
raises RuntimeError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Concatenate, ParamSpec, TypeVar

from engine.kube.api import KubeApi

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[KubeApi, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[BlockingKube, P], T]:
    def wait(kube: BlockingKube, /, *args: P.args, **more: P.kwargs) -> T:
        if _is_running_here(kube.loop):
            where = "on the event loop that sends its request"
            raise RuntimeError(f"BlockingKube.{method.__name__} was called {where}: call it from another thread")
        request: Coroutine[object, object, T] = getattr(kube.api, method.__name__)(*args, **more)
        return asyncio.run_coroutine_threadsafe(request, kube.loop).result()

    return wait


def _is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class BlockingKube:
    def __init__(self, api: KubeApi, loop: asyncio.AbstractEventLoop) -> None:
        self.api = api
        self.loop = loop

    get = _waiting(KubeApi.get)
    list = _waiting(KubeApi.list)
    create = _waiting(KubeApi.create)
    patch = _waiting(KubeApi.patch)
    replace = _waiting(KubeApi.replace)
    delete = _waiting(KubeApi.delete)
