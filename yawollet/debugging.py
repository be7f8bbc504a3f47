"""Ad-hoc debugging: adds an SSH key from the LoadBalancer's annotations to a running machine.

The machine image lets the agent's user run exactly two commands as root. They are written here exactly as in the
image's sudoers file. As in yawol, the agent never revokes the access, so the machine should be replaced afterwards.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from domain.loadbalancers.constants import AD_HOC_DEBUG_ANNOTATION, AD_HOC_DEBUG_KEY_ANNOTATION
from domain.loadbalancers.go_formats import parse_bool
from domain.loadbalancers.resources import LoadBalancer
from domain.notices import Notice, warning

KEYS_FILE = "/home/yawoldebug/.ssh/authorized_keys"
WRITE_KEY = ("sudo", "tee", KEYS_FILE)
START_SSHD = ("sudo", "rc-service", "sshd", "start")

_KEY = re.compile(r"ssh-rsa [A-Za-z0-9+/]+={0,2}")
_TIMEOUT_SECONDS = 10


async def ad_hoc_debug(balancer: LoadBalancer) -> Notice | None:
    """Allow SSH with the annotated key. Returns the result; None if not requested."""
    annotations = balancer.metadata.annotations
    key = annotations.get(AD_HOC_DEBUG_KEY_ANNOTATION, "")
    if not parse_bool(annotations.get(AD_HOC_DEBUG_ANNOTATION, "")) or not key:
        return None
    if balancer.spec.debug_settings.enabled:
        return _not_enabled("debugSettings are enabled, there is no need for ad-hoc debugging")
    if not _KEY.fullmatch(key):
        return _not_enabled("the SSH key must have the form `ssh-rsa KEY` and no comment")
    for command, given in ((WRITE_KEY, f"{key}\n"), (START_SSHD, "")):
        if fault := await _fault(command, given):
            return _not_enabled(f"{' '.join(command)}: {fault}")
    return warning("AdHocDebuggingEnabled", "Ad-hoc debugging is enabled: SSH is open for the annotated key")


def _not_enabled(why: str) -> Notice:
    return warning("AdHocDebuggingNotEnabled", f"Ad-hoc debugging is not enabled: {why}")


async def _fault(command: Sequence[str], given: str) -> str:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=null, stderr=pipe)
    except OSError as error:
        return str(error)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            _, output = await process.communicate(given.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"the command did not end within {_TIMEOUT_SECONDS} s"
    if process.returncode == 0:
        return ""
    return f"exit code {process.returncode}: {output.decode(errors='replace').strip()}"
