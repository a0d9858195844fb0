-- Which domains repeat themselves most?
SELECT url_host_private_domain AS domain, count(DISTINCT url) AS pages, count(DISTINCT CASE WHEN duplicate_of IS NOT NULL THEN url END) AS copies,
  round(100 * CAST(count(DISTINCT CASE WHEN duplicate_of IS NOT NULL THEN url END) AS DOUBLE) / count(DISTINCT url), 1) AS percent
FROM pages
GROUP BY url_host_private_domain
ORDER BY copies DESC, domain
LIMIT 100;
