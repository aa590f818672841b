"""The warm judges of this user, one line for each."""

from attnlab.records import record
from attnlab.render.formats import format_seconds
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, plural
from attnlab.worker.warm_start import ServerState

MEGABYTE = 1 << 20


@record
class ServerPage:
    servers: tuple[ServerState, ...]
    stopped: bool = False
    unwanted: str = ""  # why commands here do without one
    others: int = 0  # of other installations, which go on

    def show(self, screen: Screen) -> None:
        for server in self.servers:
            doing = "stopped" if self.stopped else "running"
            screen.say(
                (f"{screen.marks.ok} {doing}  ", "ok"),
                (f"process {server.pid}", "title"),
                f", for {format_seconds(server.seconds)}: {plural(server.commands, 'command')} "
                f"served, {server.running} now, {server.memory // MEGABYTE} MB",
            )
            screen.say((f"of {server.installation or 'another version'}", "aside"), indent=2)
            if not self.stopped:
                left = max(1, round((server.idle - server.unused) / 60))
                screen.say(f"leaves after {plural(left, 'minute')} without a command", indent=2)
        if not self.servers:
            which = " of this installation" if self.others else ""
            screen.say(f"no warm judge{which} runs")
        if self.others:
            which = plural(self.others, "judge") + " of other installations"
            screen.say(f"left running: {which}; attnlab server stop --all ends these, too")
        if self.unwanted:
            screen.say(f"commands here do without one: {self.unwanted}")
        elif not self.servers:
            screen.say("the next command that needs torch starts one; it leaves when it is idle")

    def document(self) -> Document:
        return pick(self, "servers", "stopped", "unwanted", "others")
