-- Which links are broken, and on which pages are they?
-- No row: no page links to a URL that is gone or does not answer
SELECT l.source, l.target, l.anchor, f.outcome, f.http_status
FROM (SELECT DISTINCT crawl, source, target, anchor FROM links WHERE kind = 'a') l
JOIN (SELECT DISTINCT crawl, url, outcome, http_status FROM fetches
      WHERE outcome IN ('http_4xx', 'http_5xx', 'dns_error', 'connect_error', 'tls_error', 'redirect_limit')) f
  ON f.crawl = l.crawl AND f.url = l.target
ORDER BY l.target, l.source, l.anchor, f.outcome, f.http_status;
