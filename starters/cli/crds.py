from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from domain.custom_resources import all_crds
from domain.schema import Document
from engine.settings import settings
from starters.cli.output import CommandError
from starters.cli.state_directory import UnusedStateOption

HEADER = "# Generated from the models in domain/ by `perdure crds --output deploy/crds`; do not edit.\n"


def crds(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write one file per kind into this directory.")
    ] = None,
    selectable_fields: Annotated[
        bool,
        typer.Option(
            "--selectable-fields/--no-selectable-fields",
            help="Whether to include selectable fields, which kubectl refuses before Kubernetes 1.30.",
        ),
    ] = True,
    state: UnusedStateOption = None,
) -> None:
    """Print the CustomResourceDefinitions, or write one file per kind.

    Example: perdure crds | kubectl apply -f -
    """
    files = crd_files(settings().claims_domain, selectable_fields=selectable_fields)
    if output is None:
        typer.echo("---\n".join(files.values()), nl=False)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (output / name).write_text(text)
    except OSError as error:
        raise CommandError(f"the definitions cannot be written: {error}") from error
    typer.echo(f"{len(files)} files written to {output}")


def crd_files(domain: str, *, selectable_fields: bool = True) -> dict[str, str]:
    crds = all_crds(domain, selectable_fields=selectable_fields)
    return {_file_name(crd): HEADER + yaml.safe_dump(crd, sort_keys=False, width=120) for crd in crds}


def _file_name(crd: Document) -> str:
    metadata = crd["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101 - narrows for the type checker
    plural, group = str(metadata["name"]).split(".", 1)
    return f"{group}_{plural}.yaml"
