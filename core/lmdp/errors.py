"""What can go wrong with tagged columns, in plain words; needs no tensors."""


class ShiftError(RuntimeError):
    """No tilt within the bounds is strong enough; the message says what to change."""
