"""client, Compute, combiner: pure steps without I/O, clock or global randomness."""

from hubbub.roles.client import contribute, start_sessions
from hubbub.roles.combiner import combine_sums, decode_release
from hubbub.roles.compute import (
    Compute,
    ComputeSum,
    Roster,
    Turnout,
    accept,
    agree,
    check_address,
    check_new,
    check_roster,
    check_turnout,
    compute_sum,
    open_report,
    open_share,
    read_report,
    read_roster,
    refuse,
    release,
    roster_digest,
    roster_of,
    serves,
    serves_all,
    sum_over,
    turnout_of,
)
from hubbub.roles.crowd import share_out
from hubbub.roles.driver import run_round
from hubbub.roles.selection import Outside, vectors_of
from hubbub.roles.study import RoundPlan, Study, settle_round

__all__ = [
    "Compute", "ComputeSum", "Outside", "Roster", "RoundPlan", "Study", "Turnout", "accept", "agree", "check_address",
    "check_new", "check_roster", "check_turnout", "combine_sums", "compute_sum", "contribute", "decode_release",
    "open_report", "open_share", "read_report", "read_roster", "refuse", "release", "roster_digest", "roster_of",
    "run_round", "serves", "serves_all", "settle_round", "share_out", "start_sessions", "sum_over", "turnout_of",
    "vectors_of",
]  # fmt: skip
