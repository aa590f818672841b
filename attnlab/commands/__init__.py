"""The commands, a file each, and what they share."""

SHARED = {
    "asking",
    "base",
    "output",
    "rounds",
    "target_flags",
}  # files of this folder that are no command
# What commands are for, as `attnlab --help` says it, and their places.
TITLES = {
    "Practise": range(65),
    "Prepare for an interview": range(65, 100),
    "Debug your own code": range(100, 110),
    "Look up": range(110, 190),
    "Grade a class; look after attnlab": range(190, 1000),
}
