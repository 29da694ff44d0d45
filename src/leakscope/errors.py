"""The one error a user is meant to see: a sentence, and exit status 2."""

from __future__ import annotations


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence that says what to do.

    Raised for every kind of bad input: a file that is not what it claims to be, a row with a NaN,
    a negative standard deviation, a size that does not fit in memory.  The command line prints
    the message on stderr and exits with status 2.

    Examples
    --------
    >>> from leakscope import laws
    >>> laws.Normal(0.0, -1.0)
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: Normal: sigma must be positive and finite, but it is -1.0.
    """
