"""A LangChain document transformer that orders documents by a measured curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catenary.errors import MissingResource
from catenary.retrieval.order.assign import SlotWeights, arrange
from catenary.retrieval.order.scores import relevance_of

try:
    from langchain_core.documents import BaseDocumentTransformer, Document
except ImportError as error:
    raise MissingResource("langchain-core is not installed; pip install 'catenary[langchain]'") from error


class MeasuredOrder(BaseDocumentTransformer):
    """Puts the most relevant document where the measured curve is highest, and so on down both.

    Documents come as a retriever returns them, the most relevant first, unless ``score_key`` names the metadata that
    holds each one's relevance (larger is more relevant). The same objects come back, none added or lost.
    """

    def __init__(self, weights: SlotWeights, score_key: str | None = None) -> None:
        """Order by these slot weights; ``catenary.retrieval.order.scores.read_weights`` reads them from a curve."""
        self.weights = weights
        self.score_key = score_key

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """The documents in their measured order.

        Raises:
            InvalidInput: where some documents have a score and others none.
        """
        scores = None
        if self.score_key is not None:
            scores = [document.metadata.get(self.score_key) for document in documents]
        return [documents[i] for i in arrange(relevance_of(len(documents), scores), self.weights)]
