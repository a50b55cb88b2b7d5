"""The interface's languages: one catalogue each (`de.po`), and how texts are said in them.

The code is written in English, and so is everything stored: plans, ledgers, certificates, logs and
the command line. Pages say their texts through `Language.say`. Texts that come from below, or were
stored long ago, arrive as finished English sentences; `Language.said` recognises them by the
templates in the code and says them anew. Another language is another `.po` file:
`python -m docs.make_catalogue` collects the texts, Babel's format holds them.
"""
