-- Which links are broken, and on which pages are they?
-- No row: no page links to a URL that is gone or does not answer
SELECT l.source, l.target, l.anchor, f.outcome, f.http_status
FROM (SELECT DISTINCT crawl, source, target, anchor FROM links WHERE kind = 'a') l
JOIN (SELECT crawl, url, outcome, http_status, row_number() OVER (PARTITION BY crawl, url ORDER BY round DESC) AS place
      FROM fetches WHERE outcome NOT IN ('deferred', 'host_suspended', 'robots_unreachable', 'stopped')) f
  ON f.crawl = l.crawl AND f.url = l.target AND f.place = 1
WHERE f.outcome IN ('http_4xx', 'http_5xx', 'dns_error', 'connect_error', 'tls_error', 'timeout', 'protocol_error', 'redirect_limit')
ORDER BY l.target, l.source, l.anchor, f.outcome, f.http_status;
