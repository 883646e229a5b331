"""How sums are kept secret: sharing schemes, shares and reports as bytes, sealing to Computes."""

from hubbub.protocols import SecureSum, Share
from hubbub.registry import Registry
from hubbub.securesum.additive import Additive, check_computes, check_secure_sum
from hubbub.securesum.exposure import conspiring_sizes, smallest_k
from hubbub.securesum.replicated import Replicated
from hubbub.securesum.seal.hpke import Context, PrivateKey, PublicKey, SuiteName, check_suite, open_sealed, seal
from hubbub.securesum.seal.sessions import OPENING_BYTES, Session, join_session, mark_of, start_session
from hubbub.securesum.seeds import expand_seed
from hubbub.securesum.shamir import Shamir
from hubbub.securesum.subset import Subset, least_clients
from hubbub.securesum.tally import AdditiveTally, Masks, check_masks, clients_at_once
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

SECURE_SUMS: Registry[SecureSum] = Registry(
    "hubbub.secure_sums", "scheme",
    {
        "additive": "hubbub.securesum.additive:Additive",
        "replicated": "hubbub.securesum.replicated:Replicated",
        "shamir": "hubbub.securesum.shamir:Shamir",
        "subset": "hubbub.securesum.subset:Subset",
    },
)  # fmt: skip
"""Every secure sum that is installed here."""

__all__ = [
    "OPENING_BYTES", "SECURE_SUMS", "Additive", "AdditiveTally", "Context", "Frame", "Masks", "PrivateKey",
    "PublicKey", "Replicated", "Report", "Session", "Shamir", "Share", "Subset", "SuiteName", "check_computes",
    "check_masks", "check_secure_sum", "check_suite", "clients_at_once", "conspiring_sizes", "decode_report",
    "decode_share", "encode_report", "encode_share", "expand_seed", "join_reports", "join_session", "least_clients",
    "mark_of", "open_sealed", "pack", "seal", "smallest_k", "split_reports", "start_session",
]  # fmt: skip
