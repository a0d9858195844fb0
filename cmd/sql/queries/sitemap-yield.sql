-- What do the sitemaps of each host list, and how much of it was fetched?
-- No row: no sitemap was found
SELECT u.host, count(DISTINCT l.target) AS listed, count(DISTINCT f.url) AS fetched
FROM links l
JOIN urls u ON u.url = l.target
LEFT JOIN fetches f ON f.url = l.target AND f.crawl = l.crawl AND f.outcome = 'ok'
WHERE l.kind = 'sitemap'
GROUP BY u.host
ORDER BY listed DESC, u.host;
