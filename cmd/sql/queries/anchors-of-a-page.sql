-- With which words do other pages link to this page?
SELECT anchor, count(DISTINCT source) AS pages, min(source) AS example
FROM links
WHERE target = '{url}' AND source <> target
GROUP BY anchor
ORDER BY pages DESC, anchor;
