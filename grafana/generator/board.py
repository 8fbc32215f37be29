"""What is around the panels of a dashboard: variables, links to the others, alerts as annotations, places on the page.

A dashboard is a module with UID, TITLE, DESCRIPTION, ALERTS (the rules of alerts.yml whose firing it marks), ROWS (pairs of a heading and panels) and,
where panels are of regions, TABLES = True for the variable.
"""

from panels import DATASOURCE
from queries import SERVERS

TAG = "basalt"
WIDTH = 24


def variable(name, label, metric):
    query = f"label_values({metric}, {name})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "variable"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def variables(tables):
    chosen = [
        {
            "type": "datasource",
            "name": "datasource",
            "label": "Data source",
            "query": "prometheus",
            "refresh": 1,
            "current": {},
        },
        variable("job", "Job", "basalt_build_info"),
        variable("instance", "Server", 'basalt_build_info{job=~"$job"}'),
    ]
    if tables:
        chosen.append(variable("table", "Table", f"basalt_region_writes_total{{{SERVERS}}}"))
    return chosen


def firing(alerts):
    """A red mark in all panels for as long as one of the alerts fires."""
    names = "|".join(alerts)
    return {
        "name": "Alerts",
        "enable": True,
        "hide": False,
        "iconColor": "red",
        "datasource": DATASOURCE,
        # Some rules sum over jobs, so that their alerts have no such label.
        "expr": f'ALERTS{{alertstate="firing",alertname=~"{names}",instance=~"$instance"}}',
        "step": "10s",
        "titleFormat": "{{alertname}}",
        "textFormat": "{{instance}}",
        "tagKeys": "severity",
    }


def layout(rows):
    """All panels with their ids and places: left to right, a new line where one does not fit."""
    placed = []
    y = 0
    for title, panels in rows:
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        placed.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place})
        x, y, line = 0, y + 1, 0
        for each in panels:
            place = each["gridPos"]
            if x + place["w"] > WIDTH:
                x, y, line = 0, y + line, 0
            place.update(x=x, y=y)
            x += place["w"]
            line = max(line, place["h"])
            placed.append(each)
        y += line
    for number, each in enumerate(placed, start=1):
        each["id"] = number
    return placed


def dashboard(board):
    return {
        "title": board.TITLE,
        "uid": board.UID,
        "description": board.DESCRIPTION,
        "tags": [TAG],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-30m", "to": "now"},
        "refresh": "10s",
        "timezone": "browser",
        "annotations": {"list": [firing(board.ALERTS)]},
        # A button for every dashboard of ours, which keeps what is chosen here.
        "links": [
            {
                "type": "dashboards",
                "title": "Basalt",
                "tags": [TAG],
                "asDropdown": False,
                "icon": "dashboard",
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
                "tooltip": "",
                "url": "",
            }
        ],
        "templating": {"list": variables(getattr(board, "TABLES", False))},
        "panels": layout(board.ROWS),
    }
