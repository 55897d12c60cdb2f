"""What can be measured here, what this kymo is, and a program that lets others look at it.

    python examples/look_around.py

Nothing is recorded: `kymo doctor` says the same, and more, in a terminal.
"""

import kymo


def main() -> None:
    findings = kymo.doctor(wait=1.0)
    print(f"kymo {kymo.__version__} can record here: {findings.can_record}")
    for row in findings:
        if row["state"] == "missing":
            print(f"  missing: {row['subject']}, {row['thing']}")
    print(f"headers for extensions in C: {kymo.get_include()}")
    print(f"the library to link with: {kymo.get_library_dir()}")
    print(kymo.options_help().splitlines()[0])
    try:
        kymo.allow_attach()  # from now on `kymo top PID` of the same user works where Yama forbids it
        print("whoever is the same user may attach")
    except kymo.KymoError as error:
        print(error)


if __name__ == "__main__":
    main()
