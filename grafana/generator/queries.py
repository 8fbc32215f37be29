"""Words that PromQL queries are made of.

Every query is limited to the servers that are chosen at the top of a dashboard, those of regions to the tables, too.
"""

SERVERS = 'job=~"$job",instance=~"$instance"'
REGIONS = SERVERS + ',table=~"$table"'
# The sum of the regions beyond metrics.max_regions is no region: it would look like the hottest of all.
REAL_REGIONS = REGIONS + ',region!="other"'


def value(metric, selector=SERVERS):
    return f"{metric}{{{selector}}}"


def rate(metric, selector=SERVERS):
    return f"rate({metric}{{{selector}}}[$__rate_interval])"


def grouping(by):
    return f"by ({', '.join(by)}) " if by else ""


def total(metric, *by, selector=SERVERS):
    """The rate of a counter, summed over everything but the labels `by`."""
    return f"sum {grouping(by)}({rate(metric, selector)})"


def summed(metric, *by, selector=SERVERS):
    """A gauge, summed over everything but the labels `by`."""
    return f"sum {grouping(by)}({value(metric, selector)})"


def worst(metric, *by):
    """A gauge's largest value, for each server."""
    return f"max {grouping(('instance', *by))}({value(metric)})"


def quantile(q, histogram, *by, selector=SERVERS):
    return f"histogram_quantile({q}, {total(histogram + '_bucket', 'le', *by, selector=selector)})"


def mean(histogram):
    return f"{total(histogram + '_sum')} / {total(histogram + '_count')}"


def share(part, whole):
    """Empty while the whole is zero: a quiet server has no share of anything."""
    return f"{part} / ({whole} > 0)"


def hottest(count, query):
    return f"topk({count}, sum by (table, region) ({query}))"


def peak_to_mean(metric):
    """How many times the mean region's rate the busiest region of a table has. Tables without any are left out."""
    each = rate(metric, REAL_REGIONS)
    return f"max by (instance, table) ({each}) / (avg by (instance, table) ({each}) > 0)"
