"""The interface's languages: one catalogue each (`de.po`), and how texts are said in them.

The code is written in English, and so is everything that leaves it: certificates, logs, the command
line. Pages say their own texts through `Language.say`; texts from below are messages with their
template and values (`core.message`), and `Language.render` says them at the very end. Another
language is another `.po` file: `python -m docs.make_catalogue` collects the texts.
"""
