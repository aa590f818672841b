"""`python -m attnlab` and the `attnlab` command."""


def main() -> None:
    from attnlab.cli import main as run

    run()


if __name__ == "__main__":
    main()
