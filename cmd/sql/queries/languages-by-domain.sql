-- In which languages are the pages of each domain?
SELECT url_host_private_domain AS domain, language, count(*) AS pages
FROM pages
GROUP BY url_host_private_domain, language
ORDER BY domain, pages DESC, language;
