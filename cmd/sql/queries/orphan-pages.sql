-- Which pages does no other page link to?
SELECT DISTINCT p.url, p.title
FROM pages p
LEFT JOIN (SELECT DISTINCT target FROM links WHERE kind <> 'sitemap' AND source <> target) l ON l.target = p.url
WHERE l.target IS NULL AND p.document_kind = 'html'
ORDER BY p.url, p.title;
