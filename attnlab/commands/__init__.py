"""The commands, a file each, and what they share."""

SHARED = {"base", "target_flags"}  # files of this folder that are no command
