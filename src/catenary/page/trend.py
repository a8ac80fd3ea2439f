"""How shape indices move over the combinations of a variation, as a chart."""

from __future__ import annotations

import math

from catenary.charts import FAINT, FONT, INK, MUTED, SCHEMA, Spec
from catenary.drawing import PALETTE, clean
from catenary.explore.variation import SHOWN, Variation


def trend(variation: Variation) -> Spec:
    """Every index of ``SHOWN`` over the combinations, each divided by its value at the first one that is predicted.

    The y axis is logarithmic; indices that are undefined or 0 somewhere leave gaps there.
    """
    predicted = variation.predicted
    start = predicted[0].shape
    assert start is not None
    data = []
    for order, variant in enumerate(predicted):
        for name in SHOWN:
            assert variant.shape is not None
            ratio = variant.shape[name].value / start[name].value if start[name].value else math.nan
            if math.isfinite(ratio) and ratio > 0:
                data.append({"order": order, "variant": clean(variant.label, 60), "curve": name, "ratio": ratio})
    x = {"field": "variant", "type": "nominal", "sort": {"field": "order"}, "title": None,
         "axis": {"labelAngle": -30, "labelLimit": 260}}
    y = {"field": "ratio", "type": "quantitative", "scale": {"type": "log", "nice": False, "padding": 10},
         "title": f"index / its value at {clean(predicted[0].label, 60)}", "axis": {"format": ".3~g", "tickCount": 6}}
    colour = {"field": "curve", "type": "nominal", "title": None, "sort": list(SHOWN),
              "scale": {"domain": list(SHOWN), "range": list(PALETTE)}}
    encoding = {"x": x, "y": y, "color": colour}
    line = {"type": "line", "strokeWidth": 2, "strokeJoin": "round"}
    return {
        "$schema": SCHEMA,
        "description": f"Shape indices at birth of {clean(variation.model, 60)} over {len(predicted)} variants",
        "width": 620,
        "height": 300,
        "params": [],
        "datasets": {"drawn": data},
        "data": {"name": "drawn"},
        "layer": [
            {"name": "line", "mark": line, "encoding": encoding},
            {"name": "point", "mark": {"type": "point", "filled": True, "size": 45}, "encoding": encoding},
        ],
        "config": {
            "font": FONT,
            "axis": {"labelColor": MUTED, "titleColor": INK, "gridColor": FAINT, "domainColor": MUTED,
                     "titleFontWeight": "normal"},
            "legend": {"labelColor": INK},
            "view": {"stroke": None},
        },
    }
