"""Documents of ActiveDocs as 3scale gets them: JSON that says what was written."""

from __future__ import annotations

import json

from domain.threescale.calls import Read, Resource
from domain.threescale.conditions import SyncState
from domain.threescale.document_sources import Text, as_sent
from domain.threescale.resources.shared import Document, ObjectReference

YAML = """
openapi: "3.0.2"
info: {title: Pets, version: 2020-01-01}
paths: {/a: {get: {responses: {200: {description: ok}}}}}
x-since: 2020-01-01T10:00:00Z
"""


def test_a_document_in_yaml_is_sent_as_json_with_its_dates_as_they_were_written() -> None:
    sent = as_sent("spec.activeDocOpenAPIRef", "pets", Text(body=YAML))

    assert sent.blocker is None
    assert json.loads(sent.body) == {
        "openapi": "3.0.2",
        "info": {"title": "Pets", "version": "2020-01-01"},
        "paths": {"/a": {"get": {"responses": {"200": {"description": "ok"}}}}},
        "x-since": "2020-01-01T10:00:00Z",
    }


def test_a_document_that_cannot_be_read_makes_its_object_invalid() -> None:
    sent = as_sent("spec.activeDocOpenAPIRef", "pets", Text(body="- 1"))

    assert sent.blocker is not None
    assert sent.blocker.state is SyncState.INVALID
    assert sent.blocker.message == (
        'spec.activeDocOpenAPIRef: Invalid value: "pets": a list or a single value, where an object is needed'
    )


def test_messages_name_a_documents_url_without_its_query_and_user() -> None:
    url = "https://jane:s3cret@example.com/pets.yaml?sig=s3cret"
    assert Document(url=url).place == "https://example.com/pets.yaml"
    read = Read(resource=Resource.TEXT, path=url)
    assert (read.slot, read.summary) == ("https://example.com/pets.yaml", "read https://example.com/pets.yaml")
    assert Document(secret_ref=ObjectReference(name="pets")).place == "pets"
