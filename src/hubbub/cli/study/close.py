"""`hubbub study close`: end the current round of a study and open the next."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from cyclopts import Parameter

from hubbub.cli.options import Authority, Json, KeyFile, StudyFile, Without
from hubbub.cli.output import say
from hubbub.cli.study.access import as_analyst
from hubbub.cli.study.rounds import left_out, open_next, releases
from hubbub.errors import InvalidInput, PerhapsReleased, RoundRefused


@Parameter(name="*")
@dataclass(frozen=True)
class CloseOptions:
    """The arguments and options of `hubbub study close`."""

    file: StudyFile
    _: KW_ONLY
    key: KeyFile = None
    without: Without = ()
    authority: Authority = None
    json: Json = False


def close(options: CloseOptions) -> None:
    """End the current round; the Computes agree and release, and the next round is opened.

    For example:

        hubbub study close study.json
    """
    run(options)


def run(options: CloseOptions) -> None:
    """End the current round, add up what the Computes release, and open the next round if there is one."""
    analyst = as_analyst(options.file, options.key, options.authority)
    without = left_out(analyst.study, options.without)
    found = analyst.catch_up()
    if not found:
        raise InvalidInput("study must have an open round, got none; open it with `hubbub study open`")
    record = found[-1].record
    if found[-1].state == "open" and not found[-1].reports:
        raise InvalidInput(
            f"round {record.number} ({record.label}) must have reports before it is closed, got none; it has only "
            "just been opened: let the clients contribute first"
        )
    analyst.close(record)  # also to a Compute that was away when it was closed before
    try:
        release = analyst.release(record, without=without)
    except RoundRefused as refusal:
        label = open_next(analyst, releases(analyst, without))
        raise RoundRefused(refusal.reason, f"{refusal}; a new round ({label}) is open in its place") from None
    except PerhapsReleased as doubt:
        raise PerhapsReleased(
            f"{doubt}; no new round is opened: ask the operators of those Computes, then run `hubbub study close` again"
        ) from None
    label = open_next(analyst, releases(analyst, without))
    following = f"round {record.number + 1} ({label}) is open" if label else "see `hubbub study result`"
    content = {"study": analyst.study.id, "round": record.number, "n": release.n, "next": label}
    say(options.json, content, f"round {record.number} ({record.label}) is released, {release.n} samples; {following}")
