"""Papers held to what we measure: claims, the experiments that test them, and the ledger of verdicts."""
