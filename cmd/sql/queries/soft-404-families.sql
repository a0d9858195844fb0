-- Which hosts send the same text at many paths, and so perhaps for any URL? With the number of such pages and an example of each text
-- No row: no host sent one text at ten paths or more, declared copies and pages of fewer than ten words left out
SELECT url_host_name AS host, coalesce(duplicate_of, url) AS representative, count(DISTINCT url) AS pages,
  count(DISTINCT CASE WHEN page_hint = 'soft_404' THEN url END) AS hinted, min(url) AS example, min(title) AS title
FROM pages
WHERE soft_404_family
GROUP BY url_host_name, coalesce(duplicate_of, url)
ORDER BY pages DESC, url_host_name, representative;
