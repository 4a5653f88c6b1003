"""`python -m nephila` is `nephila`."""

import signal


def start() -> None:
    """Import the program and become it. Until that is done nothing is begun, and Ctrl-C ends it without a word."""
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else whoever started us ignores it
    if handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from nephila.cli.main import main  # noqa: PLC0415 - see above

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


if __name__ == "__main__":
    start()
