"""Adapters of orders against the packages whose shapes they have."""

from __future__ import annotations

import asyncio
import math
import random

import pytest

from catenary.errors import InvalidInput
from catenary.retrieval.order import SlotWeights, edges_best_last, order_documents

WEIGHTS = SlotWeights((0.0, 0.25, 0.5, 0.75, 1.0), (1.0, 0.3, 0.1, 0.2, 0.8))
"""Best first, then last, second, fourth, third."""


def test_langchain_transformer() -> None:
    core = pytest.importorskip("langchain_core.documents", reason="langchain-core is an optional extra")
    from catenary.retrieval.order.langchain import MeasuredOrder

    documents = [core.Document(page_content=text, metadata={"score": 5 - k}) for k, text in enumerate("abcde")]
    transformer = MeasuredOrder(WEIGHTS)
    assert isinstance(transformer, core.BaseDocumentTransformer)
    assert [d.page_content for d in transformer.transform_documents(documents)] == list("acedb")
    shuffled = random.Random(0).sample(documents, 5)
    by_score = MeasuredOrder(WEIGHTS, score_key="score").transform_documents(shuffled)
    assert [d.page_content for d in by_score] == list("acedb")
    assert {id(d) for d in by_score} == {id(d) for d in documents}
    assert asyncio.run(transformer.atransform_documents(documents)) == transformer.transform_documents(documents)
    assert list(transformer.transform_documents([])) == []
    documents[0].metadata.pop("score")
    with pytest.raises(InvalidInput, match="every document or for none"):
        MeasuredOrder(WEIGHTS, score_key="score").transform_documents(documents)


def nodes(scores: list[float | None]) -> list[object]:
    from llama_index.core.schema import NodeWithScore, TextNode

    return [NodeWithScore(node=TextNode(text=str(i)), score=score) for i, score in enumerate(scores)]


def texts(found: list[object]) -> list[str]:
    return [node.node.text for node in found]  # type: ignore[attr-defined]


def test_llamaindex_postprocessor() -> None:
    types = pytest.importorskip("llama_index.core.postprocessor.types", reason="llama-index-core is an optional extra")
    from catenary.retrieval.order.llamaindex import MeasuredOrder

    order = MeasuredOrder.of(WEIGHTS)
    assert isinstance(order, types.BaseNodePostprocessor)
    given = nodes([0.2, 0.9, 0.5, 0.4, 0.1])
    found = order.postprocess_nodes(given, query_str="what?")
    assert texts(found) == ["1", "3", "4", "0", "2"]
    assert {id(node) for node in found} == {id(node) for node in given}
    assert texts(order.postprocess_nodes(nodes([None] * 5))) == ["0", "2", "4", "3", "1"]
    assert order.postprocess_nodes([]) == []
    assert order.to_dict()["class_name"] == "MeasuredOrder"
    assert texts(asyncio.run(order.apostprocess_nodes(given))) == texts(found)
    with pytest.raises(InvalidInput, match="every document or for none"):
        order.postprocess_nodes(nodes([0.5, None]))
    with pytest.raises(InvalidInput, match="finite"):
        order.postprocess_nodes(nodes([0.5, math.nan]))


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 10])
def test_the_edge_order_is_long_context_reorders(count: int) -> None:
    node = pytest.importorskip("llama_index.core.postprocessor", reason="llama-index-core is an optional extra")
    scores = [random.Random(3).random() + 0.01 * i for i in range(count)]
    random.Random(count).shuffle(scores)
    theirs = texts(node.LongContextReorder().postprocess_nodes(nodes(list(scores))))
    ours = [str(i) for i in order_documents(scores, edges_best_last(count))]
    assert ours == theirs
