"""A LlamaIndex node postprocessor that orders nodes by a measured curve."""

from __future__ import annotations

from catenary.errors import MissingResource
from catenary.retrieval.order.assign import SlotWeights, arrange
from catenary.retrieval.order.scores import relevance_of

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle
except ImportError as error:
    raise MissingResource("llama-index-core is not installed; pip install 'catenary[llamaindex]'") from error


class MeasuredOrder(BaseNodePostprocessor):
    """Puts the node of highest score where the measured curve is highest, and so on down both.

    Nodes without any score count as they come, the most relevant first. The same objects come back, none added or lost.

    Attributes:
        x: places of the measured slots in [0, 1].
        slot_weights: the curve's mean there.
    """

    x: tuple[float, ...]
    slot_weights: tuple[float, ...]

    @classmethod
    def of(cls, weights: SlotWeights) -> MeasuredOrder:
        """Order by these slot weights; ``catenary.retrieval.order.scores.read_weights`` reads them from a curve."""
        return cls(x=weights.x, slot_weights=weights.weights)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex stores this component."""
        return "MeasuredOrder"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The nodes in their measured order."""
        relevance = relevance_of(len(nodes), [node.score for node in nodes])
        return [nodes[i] for i in arrange(relevance, SlotWeights(self.x, self.slot_weights))]
