"""`perdure demo NAME`: start, apply and follow one example until its lifecycles have settled."""
