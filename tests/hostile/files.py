"""What a hostile file is."""

from __future__ import annotations

from dataclasses import dataclass

TABLE, REFUSED, EITHER = "table", "refused", "either"


@dataclass(frozen=True)
class HostileFile:
    """Bytes under a name.

    Attributes:
      name: unique in the corpus; its ending is what a person would give it.
      data: the file.
      ends: in a table, in one sentence, or in either.
      own: whether it comes so near to the limit that native code may abort the process, or leave
        it with too little memory for the next file.
      says: what the sentence, or a doubt about the table, holds.
    """

    name: str
    data: bytes
    ends: str
    own: bool = False
    says: str = ""
