"""What a template can fail with: one error, which names the place and keeps the text people know."""

from __future__ import annotations

LONGEST_TEXT = 1000


class TemplateError(Exception):
    """A template that cannot be rendered: a fault in it, or a limit it went beyond.

    Attributes:
        what: The place of the template, as its author knows it: "provider x, override".
        text: What went wrong, as Jinja2 or Python says it; statuses that quote the exception of a template show this.
    """

    def __init__(self, what: str, text: str) -> None:
        self.what = _encodable(what)
        self.text = _encodable(text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…")
        super().__init__(f"{self.what}: {self.text}")


class LimitExceeded(Exception):  # noqa: N818 - its text says the limit, which becomes a TemplateError's
    """A template asks for more than any sane one needs; see `limits`."""


def _encodable(text: str) -> str:
    """The text with `?` for each surrogate, half a character that no JSON can hold."""
    return text.encode(errors="replace").decode()


def text_of(error: BaseException) -> str:
    """An exception's own words, or its kind where it has none."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) or type(error).__name__
