"""Fixed-point ring, additive shares, wire codec and sealing."""

from hubbub.grid import FixedPoint, choose_fraction_bits
from hubbub.securesum.additive import Share, check_computes, combine, split
from hubbub.securesum.seal.hpke import Context, PrivateKey, PublicKey, SuiteName, check_suite, open_sealed, seal
from hubbub.securesum.seal.sessions import OPENING_BYTES, Session, join_session, mark_of, start_session
from hubbub.securesum.seeds import expand_seed
from hubbub.securesum.tally import Sharing, Tally, check_sharing, clients_at_once
from hubbub.securesum.wire.codec import (
    Report,
    decode_report,
    decode_share,
    encode_report,
    encode_share,
    join_reports,
    pack,
    split_reports,
)
from hubbub.securesum.wire.frames import Frame

__all__ = [
    "OPENING_BYTES", "Context", "FixedPoint", "Frame", "PrivateKey", "PublicKey", "Report", "Session", "Share",
    "Sharing", "SuiteName", "Tally", "check_computes", "check_sharing", "check_suite", "choose_fraction_bits",
    "clients_at_once", "combine", "decode_report", "decode_share", "encode_report", "encode_share", "expand_seed",
    "join_reports", "join_session", "mark_of", "open_sealed", "pack", "seal", "split", "split_reports",
    "start_session",
]  # fmt: skip
