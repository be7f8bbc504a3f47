"""Converts the payloads of workflows and activities to JSON, by pydantic.

Temporal makes a payload converter with its own type adapters for each run of a workflow, so each run would build our
models' validators again: about a millisecond and some dozen KiB for each type. Here all runs of a process share them.

Unset fields are left out, because the reader's model has the same defaults.
"""

from __future__ import annotations

from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter, ToJsonOptions
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)

_JSON = PydanticJSONPlainPayloadConverter(ToJsonOptions(exclude_unset=True))


class SharedPayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        every = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*(_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in every))


unencrypted = DataConverter(payload_converter_class=SharedPayloadConverter)
