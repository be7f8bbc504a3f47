from __future__ import annotations

LONGEST_TEXT = 1000


class TemplateError(Exception):
    def __init__(self, what: str, text: str) -> None:
        self.what = _encodable(what)  # the template's location, for its author: "provider x, override"
        # Jinja2's or Python's message, which some statuses quote.
        self.text = _encodable(text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…")
        super().__init__(f"{self.what}: {self.text}")


class LimitExceeded(Exception):  # noqa: N818 - its text names the limit, and becomes a TemplateError's text
    pass


def _encodable(text: str) -> str:
    """The text with `?` in place of surrogates, which JSON cannot contain."""
    return text.encode(errors="replace").decode()


def text_of(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error) or type(error).__name__
