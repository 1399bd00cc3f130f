"""Counters and times of one worker, as Prometheus reads them."""

from bisect import bisect_left

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Requests by route and status, with their times."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.buckets: dict[str, list[int]] = {}
        self.seconds: dict[str, float] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        if route not in self.buckets:
            self.buckets[route] = [0] * (len(BOUNDS) + 1)
            self.seconds[route] = 0.0
        self.buckets[route][bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] += seconds

    def text(self, gauges: dict[str, dict[str, float]]) -> str:
        """Return all of it, with other values by name and labels."""
        lines = ["# TYPE evenhand_requests_total counter"]
        for (route, status), n in sorted(self.requests.items()):
            lines.append(f'evenhand_requests_total{{route="{route}",status="{status}"}} {n}')
        lines.append("# TYPE evenhand_request_seconds histogram")
        for route, counts in sorted(self.buckets.items()):
            total = 0
            for bound, n in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += n
                label = f'route="{route}",le="{bound}"'
                lines.append(f"evenhand_request_seconds_bucket{{{label}}} {total}")
            lines.append(f'evenhand_request_seconds_sum{{route="{route}"}} {self.seconds[route]}')
            lines.append(f'evenhand_request_seconds_count{{route="{route}"}} {total}')
        for name, values in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# TYPE evenhand_{name} {kind}")
            lines += [f"evenhand_{name}{labels} {value}" for labels, value in values.items()]
        return "\n".join(lines) + "\n"
