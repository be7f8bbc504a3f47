"""The JSON of workflows and activities, by pydantic.

Temporal makes a payload converter for each run of a workflow, with type adapters of its own. Our models build their
validators when first used, so each run would build them again: about a millisecond and some dozen KiB for each type.
Here all runs of a process share them.
"""

from __future__ import annotations

from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    JSONPlainPayloadConverter,
)

_JSON = PydanticJSONPlainPayloadConverter()


class SharedPayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        every = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*(_JSON if isinstance(each, JSONPlainPayloadConverter) else each for each in every))


unencrypted = DataConverter(payload_converter_class=SharedPayloadConverter)
