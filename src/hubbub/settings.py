"""Where the roles can run, in words for the privacy report: who could see the samples there."""

from __future__ import annotations

from hubbub.release import Setting

NETWORK = Setting(
    "network", "clients and Computes ran apart and spoke over the network: nobody saw the samples but their holders"
)
NETWORK_HERE = Setting(
    "network on one machine",
    "the Computes were processes of their own, but one machine ran them and all clients: whoever ran it could see the "
    "samples",
)
ONE_PROCESS = Setting("one process", "all parties were simulated in one process: whoever ran it could see the samples")
ONE_CLUSTER = Setting(
    "one Spark cluster", "all parties were simulated on one Spark cluster: whoever runs it could see the samples"
)
AGGREGATOR = Setting("trusted aggregator", "one trusted party saw every sample and added the noise", aggregator=True)
