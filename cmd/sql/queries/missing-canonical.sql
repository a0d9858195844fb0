-- Which domains have pages that declare no canonical URL, or another one?
SELECT url_host_private_domain AS domain, count(*) AS pages,
  count(CASE WHEN canonical_url IS NULL THEN 1 END) AS missing,
  count(CASE WHEN canonical_url <> url THEN 1 END) AS elsewhere
FROM pages
WHERE document_kind = 'html'
GROUP BY url_host_private_domain
ORDER BY missing DESC, domain;
