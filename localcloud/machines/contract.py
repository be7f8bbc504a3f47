"""The machine host's data models: input, faults and reports.

`openstack/inside/perdure_openstack/ground.py` writes one file for each `Server` and for each `FloatingIp`.
"""

from __future__ import annotations

import re
from enum import StrEnum

from pydantic import Field, field_validator

from domain.model import Model


class Server(Model):
    id: str
    name: str
    project: str
    addresses: tuple[str, ...]
    """The fixed addresses of the server's ports; the first port's address comes first."""
    user_data: str = Field(repr=False)
    """The user data in base64, as Nova stores it. It contains a token."""
    running: bool
    """False while the server is SHUTOFF."""
    boot: int
    """A number that differs for each boot."""


class FloatingIp(Model):
    id: str
    address: str
    fixed_address: str | None
    """The fixed address to which the floating IP forwards; None if the floating IP is not associated."""


class Fare(Model):
    """Faults of machines, such as slow boots. Changes also apply to running machines."""

    server: str = Field(default="", description="regular expression, searched for in the server's name; empty: all")
    boots: bool = Field(default=True, description="False: the machine does not boot; a running machine loses power")
    boot_delay: float = Field(
        default=0, ge=0, description="seconds from the start of a machine until its services start"
    )
    agent: bool = Field(default=True, description="False: the agent does not run")
    envoy: bool = Field(default=True, description="False: Envoy does not run")
    keepalived: bool = Field(default=True, description="False: keepalived does not run")
    restart_delay: float = Field(default=1, ge=0, description="seconds until a program that has died is started again")

    @field_validator("server")
    @classmethod
    def _is_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
        return pattern


class Fares(Model):
    fares: tuple[Fare, ...] = ()

    def of(self, name: str) -> Fare:
        return next((fare for fare in self.fares if re.search(fare.server, name)), Fare())


class MachineState(StrEnum):
    FOREIGN = "foreign"  # the server's user data is not a load balancer machine's, so nothing is started
    OFF = "off"  # the server is SHUTOFF
    BOOTING = "booting"  # the machine boots, or a fault prevents it from booting
    UP = "up"


class Port(Model):
    protocol: str  # TCP or UDP
    number: int

    def __str__(self) -> str:
        return f"{self.protocol}-{self.number}"


class MachineView(Model):
    server_id: str
    name: str
    state: MachineState
    message: str = ""
    """Why the machine is not up; empty if nothing prevents it."""
    address: str = ""
    virtual_address: str = ""
    master: bool = False
    priority: int = 0
    ports: tuple[Port, ...] = ()
    agent_pid: int | None = None
    envoy_pid: int | None = None
    agent_health: str = ""
    """The host and port at which the agent answers /readyz."""
    envoy_admin: str = ""
    directory: str = ""
    """The directory with the machine's files and logs."""


class LeadView(Model):
    address: str
    virtual_address: str
    master: str = ""
    """The name of the master's server; empty while there is no master."""
    ports: tuple[Port, ...] = ()
    problems: tuple[str, ...] = ()


class HostView(Model):
    machines: tuple[MachineView, ...] = ()
    leads: tuple[LeadView, ...] = ()

    def machine(self, name: str) -> MachineView | None:
        return next((each for each in self.machines if each.name == name), None)
