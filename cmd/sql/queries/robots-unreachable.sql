-- On which hosts could robots.txt not be read, and how many URLs wait for it?
-- No row: every robots.txt that was needed was read
SELECT f.host, count(DISTINCT f.url) AS urls, max(r.http_status) AS robots_status, max(r.error) AS robots_error
FROM fetches f
LEFT JOIN requests r ON r.host = f.host AND r.crawl = f.crawl AND r.round = f.round AND r.purpose = 'robots'
WHERE f.outcome = 'robots_unreachable'
GROUP BY f.host
ORDER BY urls DESC, f.host;
