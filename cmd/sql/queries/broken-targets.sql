-- Which missing pages do most pages link to?
-- No row: no URL that a page links to answered 4xx
SELECT f.url, f.http_status, count(DISTINCT l.source) AS pages
FROM (SELECT crawl, url, outcome, http_status, row_number() OVER (PARTITION BY crawl, url ORDER BY round DESC) AS place
      FROM fetches WHERE outcome NOT IN ('deferred', 'host_suspended', 'robots_unreachable', 'stopped')) f
JOIN links l ON l.target = f.url AND l.crawl = f.crawl
WHERE f.place = 1 AND f.outcome = 'http_4xx'
GROUP BY f.url, f.http_status
ORDER BY pages DESC, f.url
LIMIT 100;
