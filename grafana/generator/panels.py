"""Kinds of panels. `queries` are pairs of a query and its legend.

Every panel says in a sentence what it shows and, where it can, what to do about it. `limit` is where somebody ought to act, mostly that of an alert
rule: above it a figure is red, or a dashed line is drawn. `see` is the uid of the dashboard that has more of the same.
"""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
HEIGHT = 8
STAT_HEIGHT = 4


def panel(kind, title, unit, queries, description, width, options, defaults, see=None):
    instant = kind != "timeseries"
    targets = [
        {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": query,
            "instant": instant,
            "legendFormat": legend,
            "range": not instant,
            "refId": chr(ord("A") + index),
        }
        for index, (query, legend) in enumerate(queries)
    ]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
        "gridPos": {"w": width, "h": STAT_HEIGHT if kind == "stat" else HEIGHT},
        "links": [link(see)] if see else [],
        "options": options,
        "targets": targets,
    }


def link(uid):
    """To another dashboard, with the same servers and the same time."""
    return {"title": "More of this", "url": f"/d/{uid}?${{__all_variables}}&${{__url_time_range}}", "targetBlank": False}


def thresholds(limit, calm, below=False):
    """Red on the wrong side of the limit. Without one, everything has the calm colour."""
    steps = [{"color": calm, "value": None}]
    if limit is not None:
        steps = [{"color": "red", "value": None}, {"color": calm, "value": limit}] if below else [*steps, {"color": "red", "value": limit}]
    return {"mode": "absolute", "steps": steps}


def graph(title, unit, *queries, description, width=8, stacked=False, max_=None, limit=None, see=None):
    custom = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 25 if stacked else 8,
        "showPoints": "never",
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "off" if limit is None else "dashed"},
    }
    defaults = {
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "min": 0,
        "thresholds": thresholds(limit, "transparent"),
    }
    if max_ is not None:
        defaults["max"] = max_
    options = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel("timeseries", title, unit, queries, description, width, options, defaults, see)


def stat(title, unit, query, description, width=4, legend="", show="value", red_above=None, red_below=None, see=None):
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": show,
    }
    limit = red_above if red_below is None else red_below
    defaults = {"color": {"mode": "thresholds"}, "thresholds": thresholds(limit, "text", below=red_below is not None)}
    return panel("stat", title, unit, [(query, legend)], description, width, options, defaults, see)


def bars(title, unit, query, legend, description, width=12):
    options = {
        "displayMode": "gradient",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "valueMode": "color",
    }
    defaults = {"color": {"mode": "continuous-BlYlRd"}, "min": 0}
    return panel("bargauge", title, unit, [(query, legend)], description, width, options, defaults)
