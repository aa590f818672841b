"""The commands, a file each, and what they share."""

SHARED = {"base", "output", "target_flags"}  # files of this folder that are no command
