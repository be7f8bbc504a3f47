"""The processes that evaluate: a nursery that imports once, and sandboxed evaluators forked from it.

    worker ── control ──► nursery (imports the functions, then only forks, kills and reaps)
       └───── requests ─► evaluator (one call at a time; JSON in, JSON out)

The worker has threads and cannot fork, so it starts this file as a program, with a minimal environment. The file is run
by path, because importing the package around it would import the worker's dependencies.

Before it reads any request, an evaluator limits its memory, files, processes and core dumps. It may make only the
system calls that computing needs (seccomp, on x86-64 and arm64); others fail with EPERM. If a request exceeds its time,
the kernel's timer kills the evaluator. An evaluator never outlives the nursery or the worker. Before it renders a
template, it writes the template's location ("ResourceProvider x, override") into memory shared with the worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, get_type_hints

REQUEST = struct.Struct("<HI")  # number of the function, length of the request
REPLY = struct.Struct("<BI")  # one of the outcomes, length of the reply
RESULT, TEMPLATE_ERROR, OUT_OF_MEMORY, FAILED, LAST_RESULT = range(5)
NOTE = struct.Struct("<H")
NOTE_LENGTH = 1024
ORDER_LENGTH = 64 * 1024
TRACEBACK_LENGTH = 4000

# Modules that functions of Jinja2, MarkupSafe and datetime, and `str.encode` import only when they are called.
IMPORTED_LATE = (
    "_strptime",
    "html",
    "jinja2.constants",
    "jinja2.debug",
    "textwrap",
    *(
        f"encodings.{name}"
        for name in ("ascii", "cp1252", "idna", "latin_1", "punycode", "utf_16", "utf_32", "utf_8_sig")
    ),
)

Call = Callable[[bytes], bytes]


def main(control: socket.socket) -> None:
    setup = json.loads(control.recv(ORDER_LENGTH))
    sys.path[:] = setup["path"]
    try:
        calls = [_call(name) for name in setup["functions"]]
        from domain.claims.templates.renderer import announce_to
    except Exception:
        control.send(json.dumps({"failed": traceback.format_exc(limit=-8)[-TRACEBACK_LENGTH:]}).encode())
        return
    _warm_up()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page that holds an object
    control.send(json.dumps({"ready": True}).encode())
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, ORDER_LENGTH, 2)
        if not text:
            return
        order = json.loads(text)
        if "reap" in order:
            control.send(json.dumps({"status": _reap(order["reap"])}).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _evaluate(calls, announce_to, descriptors, setup)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(json.dumps({"pid": pid}).encode())


def _reap(pid: int) -> int | None:
    """Kill an evaluator unless it has ended; returns its exit code, negative for a signal.

    Processes are reaped only here, so the id cannot belong to another process yet.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if not ended:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _call(name: str) -> Call:
    module, _, attribute = name.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    hints = get_type_hints(function)
    hints.pop("return")
    (request,) = hints.values()

    def call(text: bytes) -> bytes:
        reply: str = function(request.model_validate_json(text)).model_dump_json()
        return reply.encode()

    return call


def _warm_up() -> None:
    from domain.model import build_models

    build_models()
    for module in IMPORTED_LATE:
        importlib.import_module(module)
    from datetime import UTC, datetime

    from domain.claims.templates.renderer import Renderer

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for newer in (False, True):
        Renderer(moment, newer=newer).render(
            "{{ now() }}{{ '1h' | parse_time_interval }}{{ '2026-01-01' | to_datetime('%Y-%m-%d') }}"
            "{{ [1] | json_query('[0]') }}{{ '[a]{2}' | strgen }}{{ [1] | pprint }}{{ lipsum(1) }}",
            {},
            what="warming up",
        )
    traceback.format_exception(ValueError())


def _evaluate(
    calls: list[Call],
    announce_to: Callable[[Callable[[str], None]], None],
    descriptors: list[int],
    setup: dict[str, Any],
) -> NoReturn:
    try:
        requests, shared = descriptors
        place = mmap.mmap(shared, NOTE_LENGTH)
        os.close(shared)
        announce_to(lambda what: _note(place, what))
        most = setup["memory"]
        _shut_in(most)
        _serve(calls, requests, setup["seconds"], _peak() + most // 2)
    finally:
        os._exit(0)


def _note(place: mmap.mmap, what: str) -> None:
    text = what.encode(errors="replace")[: NOTE_LENGTH - NOTE.size]
    place[: NOTE.size + len(text)] = NOTE.pack(len(text)) + text


def _serve(calls: list[Call], requests: int, seconds: float, worn_out: int) -> None:
    while header := _read(requests, REQUEST.size):
        number, length = REQUEST.unpack(header)
        text = _read(requests, length)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # not handled: the signal ends this process
        outcome, reply = _outcome(calls[number], text)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if outcome == RESULT and _peak() > worn_out:
            outcome = LAST_RESULT  # the next request must not lack memory because of leftovers
        _write(requests, REPLY.pack(outcome, len(reply)) + reply)
        if outcome in (OUT_OF_MEMORY, LAST_RESULT):
            return


def _outcome(call: Call, text: bytes) -> tuple[int, bytes]:
    try:
        return RESULT, call(text)
    except MemoryError:
        return OUT_OF_MEMORY, b""
    except Exception as error:
        what, message = getattr(error, "what", None), getattr(error, "text", None)
        if isinstance(what, str) and isinstance(message, str):
            return TEMPLATE_ERROR, json.dumps([what, message]).encode()
        return FAILED, traceback.format_exc(limit=-8)[-TRACEBACK_LENGTH:].encode(errors="replace")


def _read(descriptor: int, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = os.read(descriptor, length - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _write(descriptor: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _shut_in(memory: int) -> None:
    with open("/proc/self/statm") as pages:
        mapped = int(pages.read().split()[0]) * resource.getpagesize()
    _limit(resource.RLIMIT_AS, mapped + memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, 0)  # open descriptors stay open
    _limit(resource.RLIMIT_NPROC, 0)
    _allow_computing_only()


def _limit(what: int, most: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # an administrator's own limit is lower
        resource.setrlimit(what, (most, most))


# Constants of Linux: the numbers of system calls are from asm/unistd_64.h and asm-generic/unistd.h, the others from
# linux/prctl.h, seccomp.h, filter.h and audit.h. Both lists have the system calls in this order:
# read write close fstat lseek mmap mprotect munmap brk mremap madvise rt_sigaction rt_sigprocmask rt_sigreturn getpid
# gettid exit exit_group futex clock_gettime clock_nanosleep gettimeofday getrandom setitimer getrusage sched_yield
# restart_syscall sigaltstack tgkill
_X86_64 = (0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 13, 14, 15, 39, 186, 60, 231, 202, 228, 230, 96, 318, 38, 98, 24)
_ARM64 = (63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 134, 135, 139, 172, 178, 93, 94, 98, 113, 115, 169, 278)
_ALLOWED = {
    "x86_64": (0xC000003E, (*_X86_64, 219, 131, 234)),
    "aarch64": (0xC00000B7, (*_ARM64, 103, 165, 124, 128, 132, 131)),
}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_SET_DEATH_SIGNAL, _SET_SECCOMP, _NO_NEW_PRIVILEGES, _FILTER = 1, 22, 38, 2


def _allow_computing_only() -> None:
    """Allow only the system calls in `_ALLOWED`. If the kernel refuses the filter, the resource limits remain."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]  # pointers are longer than the default int
    prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if platform.machine() not in _ALLOWED:
        return
    architecture, allowed = _ALLOWED[platform.machine()]
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _EPERM), (_LOAD, 0, 0, 0)]
    program += [(_EQUAL, len(allowed) - place, 0, number) for place, number in enumerate(allowed)]
    program += [(_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    if prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
        prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(header), 0, 0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
