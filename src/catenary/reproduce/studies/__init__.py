"""Every study, one file each; importing this registers all of them."""

from catenary.reproduce.studies import printed_sum

__all__ = ["printed_sum"]
