"""Calls that must fail."""


def error_of(kind, call, *arguments):
    """The exception of that kind which the call ends with."""
    try:
        answer = call(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} expected, not the answer {answer!r}")
