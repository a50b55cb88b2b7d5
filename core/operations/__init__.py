"""Operations: what machines ask of a server; nothing here is shown to people."""
