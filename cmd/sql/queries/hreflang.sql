-- Which translations do pages name, and were they fetched?
SELECT l.source, l.hreflang, l.target, max(p.language) AS language
FROM links l
LEFT JOIN pages p ON p.url = l.target AND p.crawl = l.crawl
WHERE l.hreflang IS NOT NULL
GROUP BY l.source, l.hreflang, l.target
ORDER BY l.source, l.hreflang, l.target;
