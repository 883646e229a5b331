"""client, Compute, combiner: pure steps without I/O, clock or global randomness."""

from hubbub.roles.client import contribute, start_sessions
from hubbub.roles.combiner import combine_sums, decode_release
from hubbub.roles.compute import (
    Compute,
    ComputeSum,
    Roster,
    accept,
    add_shares,
    agree,
    check_address,
    check_turnout,
    open_report,
    refuse,
    release,
    roster_digest,
    roster_of,
)
from hubbub.roles.crowd import share_out
from hubbub.roles.driver import run_round
from hubbub.roles.selection import vectors_of
from hubbub.roles.study import RoundPlan, Study, plan_round

__all__ = [
    "Compute", "ComputeSum", "Roster", "RoundPlan", "Study", "accept", "add_shares", "agree", "check_address",
    "check_turnout", "combine_sums", "contribute", "decode_release", "open_report", "plan_round", "refuse", "release",
    "roster_digest", "roster_of", "run_round", "share_out", "start_sessions", "vectors_of",
]  # fmt: skip
