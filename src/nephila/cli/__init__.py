"""Arguments in, a running node out: the command line (C4).

`main` is the entry and knows the commands only by name; each command is a module of its own that is imported when it is
called, so that `nephila --help` loads neither the crawler nor the terminal library. Commands read their arguments, ask
the `Backend` (the one door to `node` and `testing`) and print; they decide nothing about crawling.

Standard output is for results: with `--json` one JSON object and nothing else. Warnings, log lines and, with `--json`,
progress go to standard error.
"""
