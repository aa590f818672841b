"""The commands, a file each, and what they share."""

SHARED = {"base", "output", "rounds", "target_flags"}  # files of this folder that are no command
