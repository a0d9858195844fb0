-- Where do redirects lead, hop by hop?
-- No row: no URL was redirected
SELECT crawl, round, url, fetch_status, fetch_redirect
FROM captures
WHERE fetch_redirect IS NOT NULL
ORDER BY crawl, round, url, fetch_redirect;
