-- Which domains repeat themselves most?
SELECT url_host_private_domain AS domain, count(*) AS pages, count(duplicate_of) AS copies,
  round(100 * CAST(count(duplicate_of) AS DOUBLE) / count(*), 1) AS percent
FROM pages
GROUP BY url_host_private_domain
ORDER BY copies DESC, domain
LIMIT 100;
