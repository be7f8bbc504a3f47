"""The AWS credentials of the instances area.

If the settings name a role for a queue's account, Perdure assumes this role. For all other accounts Perdure uses the
process's own credentials, which AWS's libraries find. In observe mode only reads are sent; ReceiveMessage does not
count as a read.
"""

from __future__ import annotations

import threading

import boto3
from botocore.credentials import Credentials, ReadOnlyCredentials

from activities.aws.clients import Clients, held, mapped
from activities.aws.error_codes import Call
from activities.aws.session import NO_CREDENTIALS, Assumed, Services, require_account
from domain.instances.arns import partition_of
from domain.instances.served_queues import Place
from engine.errors import Denied

ROLE_SESSION = "perdure"


class Process(Services):
    def __init__(self, clients: Clients, *, partition: str = "aws", observing: bool) -> None:
        super().__init__(clients, "this process", partition=partition, observing=observing)
        self._lock = threading.Lock()
        self._found: Credentials | None = None

    def credential(self) -> ReadOnlyCredentials:
        look = Call(service="sts", operation="(its credentials)", caller=str(self), region=self.default_region)
        with held(self._lock, "the process's credentials"), mapped(look):
            if self._found is None:
                self._found = boto3.Session().get_credentials()
            if self._found is None:
                raise Denied("AWS's libraries find no credentials for this process", code=NO_CREDENTIALS)
            frozen: ReadOnlyCredentials = self._found.get_frozen_credentials()
            return frozen

    def refused(self, credential: ReadOnlyCredentials, error: Denied) -> bool:
        with held(self._lock, "the process's credentials"):
            self._found = None
        return self.credential() != credential


class Role(Assumed):
    def __init__(self, clients: Clients, process: Process, place: Place, *, observing: bool) -> None:
        super().__init__(clients, place.account, partition=partition_of(place.region), observing=observing)
        self._process = process
        self._place = place

    def assume(self) -> ReadOnlyCredentials:
        arn, credential = self._process.assume_role(self._place.role, ROLE_SESSION)
        require_account(arn, self._place.account, self._place.role, "Correct PERDURE_INSTANCES_QUEUES.")
        return credential


class Places:
    def __init__(self, *, connections: int, observing: bool) -> None:
        self._clients = Clients(connections=connections)
        self._observing = observing
        self._lock = threading.Lock()
        self._callers: dict[tuple[str, str], Services] = {}

    def caller(self, place: Place) -> Services:
        """The caller for a place (account and region). There is one caller per role. Places without a role share one
        caller per partition, with the process's credentials.
        """
        with self._lock:
            return self._role(place) if place.role else self._process(partition_of(place.region))

    def own_account(self, region: str) -> str:
        """The account of the process's own credentials, in the partition of `region`. Blocks."""
        with self._lock:
            process = self._process(partition_of(region))
        return process.ask_identity().account_id

    def _process(self, partition: str) -> Process:
        found = self._callers.get(("", partition))
        if not isinstance(found, Process):
            found = Process(self._clients, partition=partition, observing=self._observing)
            self._callers["", partition] = found
        return found

    def _role(self, place: Place) -> Services:
        key = (place.role, place.account)
        if key not in self._callers:
            process = self._process(partition_of(place.region))
            self._callers[key] = Role(self._clients, process, place, observing=self._observing)
        return self._callers[key]
