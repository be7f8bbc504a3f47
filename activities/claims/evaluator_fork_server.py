"""The worker's side of the evaluating processes (evaluator_sandbox.py): starts, calls and ends them."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from activities.claims.evaluator_sandbox import NOTE, NOTE_LENGTH, ORDER_LENGTH, REPLY, REQUEST

START_SECONDS = 60.0  # for imports on a busy machine
ORDER_SECONDS = 10.0
END_SECONDS = 5.0
GRACE_SECONDS = 2.0  # added to the evaluator's own timer, because this process may be busy
LONGEST_REPLY = 64 * 1024 * 1024
PROGRAM = Path(__file__).with_name("evaluator_sandbox.py")
# The environment variables that the interpreter and the C library need to start. All others, secrets included, are
# withheld.
PASSED_ON = ("LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")


class Gone(Exception):  # noqa: N818 - a state, not an error
    pass


class Process:
    def __init__(self, pid: int, generation: int, requests: socket.socket, place: mmap.mmap) -> None:
        self.pid = pid
        self.generation = generation  # the number of the fork server that forked the process
        self._requests = requests
        self._place = place

    async def exchange(self, number: int, request: bytes, seconds: float) -> tuple[int, bytes]:
        """Send a request; returns outcome and reply. Raises Gone if the process ended, TimeoutError if it hangs."""
        self._place[: NOTE.size] = NOTE.pack(0)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                await loop.sock_sendall(self._requests, REQUEST.pack(number, len(request)) + request)
                return await self._reply(loop)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise Gone from error

    async def _reply(self, loop: asyncio.AbstractEventLoop) -> tuple[int, bytes]:
        text = bytearray()
        length = REPLY.size
        outcome = -1
        while len(text) < length:
            part = await loop.sock_recv(self._requests, 256 * 1024)
            if not part:
                raise Gone
            text += part
            if outcome < 0 and len(text) >= REPLY.size:
                outcome, rest = REPLY.unpack_from(text)
                length += rest
                if rest > LONGEST_REPLY:
                    raise Gone
        return outcome, bytes(text[REPLY.size :])

    def place(self) -> str:
        (length,) = NOTE.unpack(self._place[: NOTE.size])
        return self._place[NOTE.size : NOTE.size + length].decode(errors="replace")

    def close(self) -> None:
        self._requests.close()
        self._place.close()


class Nursery:
    def __init__(self, functions: list[str], seconds: float, memory: int) -> None:
        self._functions = functions
        self._seconds = seconds
        self._memory = memory
        self._orders = asyncio.Lock()
        self._control: socket.socket | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._generation = 0
        self._unwanted: set[asyncio.Future[int | None]] = set()

    async def spawn(self) -> Process:
        """Start an evaluating process. Raises Gone if the fork server dies, RuntimeError if none can start."""
        spawning = asyncio.ensure_future(self._spawn())
        try:
            return await asyncio.shield(spawning)
        except asyncio.CancelledError:
            spawning.add_done_callback(self._abandon)
            raise

    def _abandon(self, spawning: asyncio.Future[Process]) -> None:
        if not spawning.cancelled() and spawning.exception() is None:
            ending = asyncio.ensure_future(self.reap(spawning.result()))
            self._unwanted.add(ending)
            ending.add_done_callback(self._unwanted.discard)

    async def _spawn(self) -> Process:
        place_descriptor = os.memfd_create("place", os.MFD_CLOEXEC)
        ours, theirs = socket.socketpair()
        try:
            os.ftruncate(place_descriptor, NOTE_LENGTH)
            answer = await self._order({}, [theirs.fileno(), place_descriptor])
            ours.setblocking(False)
            return Process(answer["pid"], self._generation, ours, mmap.mmap(place_descriptor, NOTE_LENGTH))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(place_descriptor)

    async def reap(self, process: Process) -> int | None:
        """Kill the process unless it has ended. Returns its exit code, negative for a signal; None if unknown."""
        process.close()
        try:
            answer = await asyncio.shield(self._order({"reap": process.pid}, [], of=process.generation))
        except Gone:  # the fork server has ended, and its processes with it
            return None
        status = answer["status"]
        return None if status is None else int(status)

    async def close(self) -> None:
        async with self._orders:
            await self._end()

    async def _order(self, order: dict[str, int], descriptors: list[int], *, of: int | None = None) -> dict[str, Any]:
        """Send an order to the fork server; returns the answer. Shield the call: if it is cancelled, the next order
        receives this order's answer. Raises Gone if the fork server dies, or if the fork server number `of` has ended.
        """
        async with self._orders:
            if of is not None and (self._control is None or of != self._generation):
                raise Gone
            if self._control is None:
                self._control = await self._start()
                self._generation += 1
            try:
                socket.send_fds(self._control, [json.dumps(order).encode()], descriptors)
                return await _answer(self._control, ORDER_SECONDS)
            except (OSError, Gone) as error:
                await self._end()
                raise Gone("the process that forks the evaluators", "has died") from error

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._program = subprocess.Popen(  # noqa: ASYNC220 - returns once it is started, in milliseconds
            [sys.executable, "-I", str(PROGRAM), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
            cwd="/",
        )
        theirs.close()
        root = str(PROGRAM.parents[2])
        setup = {
            "path": [root, *(each for each in sys.path if each and each != root)],
            "functions": self._functions,
            "seconds": self._seconds,
            "memory": self._memory,
        }
        try:
            ours.send(json.dumps(setup).encode())
            answer = await _answer(ours, START_SECONDS)
        except (OSError, Gone) as error:
            ours.close()
            await self._end()
            raise RuntimeError("the process that forks the evaluators did not start; its stderr says why") from error
        if "failed" in answer:
            ours.close()
            await self._end()
            raise RuntimeError(f"the functions to evaluate cannot be imported: {answer['failed']}")
        return ours

    async def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        program, self._program = self._program, None
        if program is not None:
            await asyncio.get_running_loop().run_in_executor(None, _wait, program)


def _wait(program: subprocess.Popen[bytes]) -> None:
    try:
        program.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGKILL)
        program.wait()


async def _answer(control: socket.socket, seconds: float) -> dict[str, Any]:
    async with asyncio.timeout(seconds):
        text = await asyncio.get_running_loop().sock_recv(control, ORDER_LENGTH)
    if not text:
        raise Gone
    answer: dict[str, Any] = json.loads(text)
    return answer
