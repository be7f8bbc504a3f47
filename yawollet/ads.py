"""Envoy's aggregated discovery service (ADS), in its state-of-the-world variant, over one stream per Envoy.

    Envoy: clusters? ──► answer v3 ──► accepted v3   (or refused, with the reason)
           listeners? ─────────────► answer v3 ──► accepted v3

The first request of a stream is answered with the current snapshot, whatever version Envoy names, because a restarted
agent may repeat a version number. Without a snapshot the agent does not answer, and Envoy keeps its configuration: an
answer without listeners would remove all listeners.

Envoy accepts clusters after it has checked their backends' health, which takes 5 seconds if a backend is dead. Changed
listeners are sent only after that, so a new port works from the start. Unchanged listeners are sent at once, because
Envoy counts as up to date only if its clusters and listeners have the new version.

Envoy applies the valid parts of an answer that it refuses.
https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import grpc

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE
from yawollet import messages
from yawollet.options import Address
from yawollet.snapshot import Snapshot

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "StreamAggregatedResources"
_STREAMS = 100

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """Envoy's ACK or NACK of resources that the agent sent; `refusal` is empty for an ACK."""

    type_url: str
    version: int
    refusal: str


@dataclass
class _Stream:
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: set[str] = field(default_factory=set)
    sent: dict[str, Snapshot] = field(default_factory=dict)  # by type
    nonces: dict[str, str] = field(default_factory=dict)  # by type, of the last answer
    answered: dict[str, int] = field(default_factory=dict)  # by type, the version that Envoy last accepted or refused


class AdsServer:
    """Serves one snapshot at a time to every Envoy. `on_answer` is called with every ACK and NACK."""

    def __init__(self, address: Address, on_answer: Callable[[Answer], None]) -> None:
        self._address = address
        self._on_answer = on_answer
        self._snapshot: Snapshot | None = None
        self._streams: list[_Stream] = []
        self._nonce = 0
        self._server = grpc.aio.server(options=[("grpc.max_concurrent_streams", _STREAMS), ("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(self._converse, messages.Request, None)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))

    async def start(self) -> None:
        """Raises RuntimeError if the address is in use."""
        self._server.add_insecure_port(str(self._address))
        await self._server.start()

    async def stop(self) -> None:
        """Every Envoy keeps its configuration."""
        await self._server.stop(None)

    @property
    def connected(self) -> bool:
        return bool(self._streams)

    def serve(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        for stream in self._streams:
            stream.moved.set()

    async def _converse(
        self, requests: AsyncIterator[messages.Request], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[bytes]:
        stream = _Stream()
        self._streams.append(stream)
        log.info("Envoy has connected")
        listening = asyncio.create_task(self._listen(stream, requests))
        try:
            while not listening.done():
                await stream.moved.wait()
                stream.moved.clear()
                for type_url in messages.TYPES:
                    if due := self._due(stream, type_url):
                        yield self._answer(stream, type_url, due)
        except asyncio.CancelledError:
            pass  # Envoy has disconnected, or the server ends; gRPC would log this as an error
        finally:
            listening.cancel()
            self._streams.remove(stream)
            log.info("Envoy has disconnected")

    async def _listen(self, stream: _Stream, requests: AsyncIterator[messages.Request]) -> None:
        try:
            async for request in requests:
                self._hear(stream, request)
                stream.moved.set()
        except Exception as error:  # an error of gRPC, or an unreadable message: it ends only this stream
            log.info("Envoy's stream has broken: %s", error)
        finally:
            stream.moved.set()

    def _hear(self, stream: _Stream, request: messages.Request) -> None:
        stream.wanted.add(request.type_url)
        if not request.nonce or request.nonce != stream.nonces.get(request.type_url):
            return  # a first request, or the ACK or NACK of an answer that is no longer the latest
        version = stream.sent[request.type_url].version
        if stream.answered.get(request.type_url) != version:
            stream.answered[request.type_url] = version
            self._on_answer(Answer(request.type_url, version, request.refusal))

    def _due(self, stream: _Stream, type_url: str) -> Snapshot | None:
        snapshot = self._snapshot
        if snapshot is None or type_url not in stream.wanted or stream.sent.get(type_url) is snapshot:
            return None
        if type_url == LISTENER_TYPE and CLUSTER_TYPE in stream.wanted and not self._clusters_stand(stream, snapshot):
            return None
        return snapshot

    def _clusters_stand(self, stream: _Stream, snapshot: Snapshot) -> bool:
        """Whether listeners may be sent: Envoy has accepted or refused this snapshot's clusters, or the listeners
        are unchanged.
        """
        before = stream.sent.get(LISTENER_TYPE)
        if before is not None and before.listeners == snapshot.listeners:
            return True
        sent = stream.sent.get(CLUSTER_TYPE)
        return sent is snapshot and stream.answered.get(CLUSTER_TYPE) == snapshot.version

    def _answer(self, stream: _Stream, type_url: str, snapshot: Snapshot) -> bytes:
        self._nonce += 1
        stream.sent[type_url] = snapshot
        stream.nonces[type_url] = str(self._nonce)
        stream.answered.pop(type_url, None)
        documents = snapshot.of(type_url).values()
        return messages.response(type_url, str(snapshot.version), str(self._nonce), documents)
