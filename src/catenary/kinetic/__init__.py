"""Kinetic theory of causal attention (arXiv 2605.09213): closed form, regimes, positional kernels. No torch here."""

from catenary.kinetic.modes import mode_count as mode_count
from catenary.kinetic.modes import mode_rate as mode_rate
from catenary.kinetic.modes import mode_weight as mode_weight
from catenary.kinetic.primitives import graphon as graphon
from catenary.kinetic.primitives import log_warp_ratio as log_warp_ratio
from catenary.kinetic.primitives import source_at as source_at
from catenary.kinetic.response import cluster_memory as cluster_memory
from catenary.kinetic.response import cluster_response as cluster_response
from catenary.kinetic.response import log_response as log_response
from catenary.kinetic.response import psi as psi
from catenary.kinetic.response import response as response
from catenary.kinetic.response import response_mass as response_mass
from catenary.kinetic.response import response_slope as response_slope
from catenary.kinetic.retrieval import log_retrieval_profile as log_retrieval_profile
from catenary.kinetic.retrieval import retrieval_curvature as retrieval_curvature
from catenary.kinetic.retrieval import retrieval_mass as retrieval_mass
from catenary.kinetic.retrieval import retrieval_profile as retrieval_profile
from catenary.kinetic.retrieval import retrieval_slope as retrieval_slope
