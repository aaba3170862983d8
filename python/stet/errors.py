"""One exception for each stable code of the library. All of them are StetError.

`code` is the stable word ("busy"), `message` names the thing and what was expected, `hint` says what to do (it may be empty), `details` holds
particulars for programs, or None.
"""


class StetError(Exception):
    code = "internal"

    def __init__(self, message="", hint="", details=None):
        super().__init__(message)
        self.message, self.hint, self.details = message, hint, details

    def __str__(self):
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self):
        return type(self), (self.message, self.hint, self.details)


class FailedError(StetError):
    """An action, a call or a check failed."""
    code = "failed"


class InvalidError(StetError, ValueError):
    """Bad input."""
    code = "invalid"


class NotFoundError(StetError, LookupError):
    code = "not_found"


class ConflictError(StetError):
    """Somebody else changed what this relied on."""
    code = "conflict"


class ExecutionKeyClash(ConflictError):
    """An entry with the same execution key and other contents is stored already."""


class BusyError(StetError, TimeoutError):
    """A lock was not had in time; trying again later may work."""
    code = "busy"


class CorruptError(StetError):
    """Stored bytes are not what was written."""
    code = "corrupt"


class IoError(StetError, OSError):
    """The file system said no: disk full, permission, device error."""
    code = "io"


class UnsupportedError(StetError):
    """A missing part or a newer format."""
    code = "unsupported"


class DeniedError(StetError):
    """Refused by policy: the handle reads only, or a deletion would be unsafe."""
    code = "denied"


class LimitError(StetError):
    """Larger, deeper or more than a stated maximum."""
    code = "limit"


class CancelledError(StetError):
    code = "cancelled"


class InternalError(StetError):
    """A bug in stet."""
    code = "internal"


BY_CODE = {c.code: c for c in (FailedError, InvalidError, NotFoundError, ConflictError, BusyError, CorruptError, IoError, UnsupportedError, DeniedError,
                               LimitError, CancelledError, InternalError)}


def make(code, message, hint, details):
    return BY_CODE.get(code, InternalError)(message, hint, details)
