"""client, Compute, combiner: pure steps without I/O, clock or global randomness."""

from hubbub.roles.client import contribute, start_sessions
from hubbub.roles.combiner import combine_sums, decode_release
from hubbub.roles.compute import (
    Compute,
    ComputeSum,
    Roster,
    Turnout,
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
    turnout_of,
)
from hubbub.roles.crowd import noise_words, share_out
from hubbub.roles.driver import run_round
from hubbub.roles.selection import vectors_of
from hubbub.roles.study import (
    RoundPlan,
    Study,
    check_finest,
    check_steps_per_sigma,
    choose_bits,
    plan_round,
    sensitivity_on_grid,
)

__all__ = [
    "Compute", "ComputeSum", "Roster", "RoundPlan", "Study", "Turnout", "accept", "add_shares", "agree",
    "check_address", "check_finest", "check_steps_per_sigma", "check_turnout", "choose_bits", "combine_sums",
    "contribute", "decode_release", "noise_words", "open_report", "plan_round", "refuse", "release", "roster_digest",
    "roster_of", "run_round", "sensitivity_on_grid", "share_out", "start_sessions", "turnout_of", "vectors_of",
]  # fmt: skip
