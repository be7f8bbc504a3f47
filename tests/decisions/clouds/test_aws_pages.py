"""Lists that AWS answers in pages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO

import pytest
from account_objects import AWS_ID
from botocore.awsrequest import AWSResponse
from botocore.credentials import ReadOnlyCredentials

from activities.aws.clients import Clients
from activities.aws.session import Services
from engine.errors import Unavailable


class Body(BytesIO):
    def stream(self, **_: object) -> Iterable[bytes]:
        return [self.read()]


class Payer(Services):
    """The payer, whose ListAccounts answers with these pages: the number of accounts, and the token of the next one."""

    def __init__(self, *pages: tuple[int, str | None]) -> None:
        clients = Clients(connections=1)
        super().__init__(clients, "the payer", observing=False)
        self.answers = iter(pages)
        shared = clients.shared("organizations", self.default_region)
        shared.meta.events.register("before-send.organizations", self.answer)

    def credential(self) -> ReadOnlyCredentials:
        return ReadOnlyCredentials("AKIA", "secret", None)

    def answer(self, **_: object) -> AWSResponse:
        number, token = next(self.answers)
        body = {"Accounts": [{"Id": AWS_ID}] * number, **({"NextToken": token} if token else {})}
        return AWSResponse("https://aws", 200, {}, Body(json.dumps(body).encode()))

    def count(self) -> int:
        pages = self.organizations().get_paginator("list_accounts").paginate()
        return sum(len(page["Accounts"]) for page in pages)


def test_empty_pages_do_not_end_a_list() -> None:
    assert Payer((0, "a"), (2, "b"), (0, "c"), (1, None)).count() == 3


def test_a_repeated_token_is_an_answer_that_cannot_be_used() -> None:
    with pytest.raises(Unavailable) as error:
        Payer((1, "a"), (1, "a"), (1, "a")).count()
    assert "organizations list_accounts as the payer in us-east-1: the answer cannot be parsed" in error.value.message
