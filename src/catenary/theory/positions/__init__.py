"""Mean attention kernels as scans, and covariances of pairs of positions, one by one or in groups."""
