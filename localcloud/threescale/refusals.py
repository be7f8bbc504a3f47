"""3scale's refusals with their exact statuses and bodies.

Unlike other Rails applications, 3scale answers a failed validation of a deletion with 403 instead of 422, and a refused
transition with one object under `error`. If a request violates a unique index that no validation has checked, the
answer is an empty 409.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from pydantic import JsonValue

from localcloud.threescale.answers import Answer
from localcloud.threescale.contract import JsonObject

TAKEN = "has already been taken"
BLANK = "can't be blank"
INVALID = "is invalid"
NOT_A_NUMBER = "is not a number"
NOT_POSITIVE = "must be greater than 0"
NEGATIVE = "must be greater than or equal to 0"
NOT_LISTED = "is not included in the list"

# The width of most of 3scale's text columns.
LONGEST_TEXT = 255


class Refused(Exception):  # noqa: N818 - a handler "raises Refused", which is what happens
    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.body or answer.text}")
        self.answer = answer


class Complaints:
    def __init__(self) -> None:
        self.errors: dict[str, list[str]] = {}

    def add(self, field: str, message: str) -> None:
        self.errors.setdefault(field, []).append(message)

    def if_blank(self, values: Mapping[str, JsonValue], *fields: str) -> None:
        for field in fields:
            value = values.get(field)
            if value is None or not str(value).strip():
                self.add(field, BLANK)

    def if_too_long(self, values: Mapping[str, JsonValue], *fields: str, longest: int = LONGEST_TEXT) -> None:
        for field in fields:
            value = values.get(field)
            if isinstance(value, str) and len(value) > longest:
                self.add(field, f"is too long (maximum is {longest} characters)")

    def if_unlisted(self, values: Mapping[str, JsonValue], field: str, allowed: Iterable[str]) -> None:
        if field in values and values[field] not in tuple(allowed):
            self.add(field, NOT_LISTED)

    def settle(self) -> None:
        if self.errors:
            raise invalid(self.errors)


def invalid(errors: Mapping[str, list[str]]) -> Refused:
    return Refused(
        Answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"errors": {field: [*each] for field, each in errors.items()}})
    )


def undeletable(message: str) -> Refused:
    return Refused(Answer(HTTPStatus.FORBIDDEN, {"errors": {"base": [message]}}))


def transition(event: str, state: str, shown: JsonObject) -> Refused:
    error: JsonObject = {
        "from": state,
        "event": event,
        "error": f'State cannot transition via "{event.replace("_", " ")}"',
        "object": shown,
    }
    return Refused(Answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": error}))


def unprocessable(message: str) -> Refused:
    return Refused(Answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": message}))


def not_found() -> Refused:
    return Refused(Answer(HTTPStatus.NOT_FOUND, {"status": "Not found"}))


def access_denied() -> Refused:
    return Refused(Answer(HTTPStatus.FORBIDDEN, {"error": "Access denied"}))


def unauthorized() -> Refused:
    return Refused(Answer(HTTPStatus.UNAUTHORIZED, text="unauthorized"))


def no_permission() -> Refused:
    return Refused(Answer(HTTPStatus.FORBIDDEN, {"error": "Your access token does not have the correct permissions"}))


def forbidden() -> Refused:
    return Refused(Answer(HTTPStatus.FORBIDDEN, {"status": "Forbidden"}))


def forbidden_without_words() -> Refused:
    return Refused(Answer(HTTPStatus.FORBIDDEN))


def missing(parameter: str) -> Refused:
    return Refused(Answer(HTTPStatus.BAD_REQUEST, text=f"Required parameter missing: {parameter}"))


def malformed() -> Refused:
    return Refused(Answer(HTTPStatus.BAD_REQUEST, text="Bad request"))


def wrong_environment() -> Refused:
    return Refused(Answer(HTTPStatus.BAD_REQUEST, {"error": "invalid environment"}))


def unknown_format(name: str) -> Refused:
    return Refused(Answer(HTTPStatus.NOT_ACCEPTABLE, {"error": f"unknown format: {name}"}))


def conflict() -> Refused:
    return Refused(Answer(HTTPStatus.CONFLICT))
