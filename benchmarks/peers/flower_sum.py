"""Flower's SecAgg+: its four stages with its own functions, all clients and the server in one process, no network.

What Flower's client mod and server workflow do around them (messages, weights by number of examples, the state
turned to records and back at every stage) is left out: that only makes Flower faster here.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import numpy as np
from common import best_of, cell_from_arguments, make_rows, report
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.quantization import dequantize, quantize
from flwr.common.secure_aggregation.secaggplus_utils import (
    pseudo_rand_gen,
    share_keys_plaintext_concat,
    share_keys_plaintext_separate,
)
from flwr.supercore.primitives.asymmetric import (
    bytes_to_public_key,
    generate_key_pairs,
    private_key_to_bytes,
    public_key_to_bytes,
)

CLIPPING_RANGE, QUANTIZATION_RANGE, MODULUS_RANGE = 1.0, 1 << 22, 1 << 32  # the last two are Flower's defaults
PublicKeys = dict[int, tuple[bytes, bytes]]


@dataclass
class Client:
    """One client of SecAgg+, and what it remembers between the stages."""

    number: int
    row: np.ndarray
    threshold: int
    keys: PublicKeys = field(default_factory=dict)
    channels: dict[int, bytes] = field(default_factory=dict)
    held: dict[int, bytes] = field(default_factory=dict)

    def setup(self) -> tuple[bytes, bytes]:
        """Stage 0: a key pair for the masks, another one for sending shares."""
        self.mask_key, mask_public = generate_key_pairs()
        self.channel_key, channel_public = generate_key_pairs()
        return public_key_to_bytes(mask_public), public_key_to_bytes(channel_public)

    def share_keys(self, keys: PublicKeys) -> dict[int, bytes]:
        """Stage 1: shares of the own seed and of the mask key, encrypted to each neighbour."""
        self.keys, self.seed = keys, os.urandom(32)
        seed_shares = create_shares(self.seed, self.threshold, len(keys))
        key_shares = create_shares(private_key_to_bytes(self.mask_key), self.threshold, len(keys))
        sent = {}
        for (number, (_, public)), seed_share, key_share in zip(keys.items(), seed_shares, key_shares, strict=True):
            if number == self.number:
                self.held[number] = seed_share
                continue
            self.channels[number] = generate_shared_key(self.channel_key, bytes_to_public_key(public))
            plaintext = share_keys_plaintext_concat(self.number, number, seed_share, key_share)
            sent[number] = encrypt(self.channels[number], plaintext)
        return sent

    def masked_vector(self, received: dict[int, bytes]) -> list[np.ndarray]:
        """Stage 2: open the neighbours' shares; quantise, add the own mask and those shared with each neighbour."""
        for source, ciphertext in received.items():
            self.held[source] = share_keys_plaintext_separate(decrypt(self.channels[source], ciphertext))[2]
        vector = quantize([self.row], CLIPPING_RANGE, QUANTIZATION_RANGE)
        vector = parameters_addition(vector, pseudo_rand_gen(self.seed, MODULUS_RANGE, [self.row.shape]))
        for source in received:
            shared = generate_shared_key(self.mask_key, bytes_to_public_key(self.keys[source][0]))
            mask = pseudo_rand_gen(shared, MODULUS_RANGE, [self.row.shape])
            combine = parameters_addition if self.number > source else parameters_subtraction
            vector = combine(vector, mask)
        return parameters_mod(vector, MODULUS_RANGE)

    def unmask(self) -> dict[int, bytes]:
        """Stage 3: nobody has dropped out, so the shares of everybody's own seed."""
        return self.held


def neighbourhoods(clients: int, shares: int) -> list[list[int]]:
    """As Flower's workflow draws them: a ring in random order, and half the neighbours on either side."""
    ring = random.sample(range(clients), clients)
    offsets = range(-(shares // 2), shares // 2 + 1)
    around = {number: {ring[(place + offset) % clients] for offset in offsets} for place, number in enumerate(ring)}
    return [sorted(around[number]) for number in range(clients)]


def secure_sum(rows: np.ndarray, shares: int) -> np.ndarray:
    """The server: carries messages between the stages, adds the masked vectors, takes the own masks off."""
    shares = min(shares, rows.shape[0])
    near = neighbourhoods(rows.shape[0], shares)
    clients = [Client(number, row, threshold=len(near[number]) // 2 + 1) for number, row in enumerate(rows)]
    publics = [client.setup() for client in clients]
    sent = [client.share_keys({i: publics[i] for i in near[client.number]}) for client in clients]
    masked = [
        client.masked_vector({i: sent[i][client.number] for i in near[client.number] if i != client.number})
        for client in clients
    ]
    total = masked[0]
    for vector in masked[1:]:
        total = parameters_addition(total, vector)
    revealed = [client.unmask() for client in clients]
    for number, neighbours in enumerate(near):
        seed = combine_shares([revealed[i][number] for i in neighbours])
        total = parameters_subtraction(total, pseudo_rand_gen(seed, MODULUS_RANGE, [rows.shape[1:]]))
    decoded = dequantize(parameters_mod(total, MODULUS_RANGE), CLIPPING_RANGE, QUANTIZATION_RANGE)[0]
    return decoded - (rows.shape[0] - 1) * CLIPPING_RANGE


def main() -> None:
    cell = cell_from_arguments()
    rows = make_rows(cell.clients, cell.dimension)
    report(best_of(cell.repeats, lambda data: secure_sum(data, cell.parties), rows))


if __name__ == "__main__":
    main()
