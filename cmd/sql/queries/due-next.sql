-- Which URLs are due next, and how large is the backlog of each host?
-- No row: no URL waits for its first fetch
SELECT host, count(*) AS urls, max(priority) AS priority, min(url) AS example
FROM urls
WHERE state IN ('found', 'deferred')
GROUP BY host
ORDER BY urls DESC, host;
