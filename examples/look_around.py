"""What can be measured here, the version of marey, and permission for samplers to attach.

    python examples/look_around.py

Nothing is recorded: `marey doctor` prints the same, and more, in a terminal.
"""

import marey


def main() -> None:
    findings = marey.doctor(wait=1.0)
    print(f"marey {marey.__version__} can record here: {findings.can_record}")
    for row in findings:
        if row["state"] == "missing":
            print(f"  missing: {row['subject']}, {row['thing']}")
    print(f"headers for extensions in C: {marey.get_include()}")
    print(f"the library to link with: {marey.get_library_dir()}")
    print(marey.options_help().splitlines()[0])
    print(f"reads files of {', '.join(marey.import_formats())}, writes {', '.join(marey.export_formats())}")
    try:
        marey.allow_attach()  # permits `marey top PID` of the same user where Yama forbids it
        print("samplers of the same user may attach")
    except marey.MareyError as error:
        print(error)


if __name__ == "__main__":
    main()
