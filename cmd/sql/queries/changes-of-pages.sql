-- How many pages of each domain are new, unchanged, changed only around their text, or changed in their text, since their last capture?
-- No row: no page was captured before, so that nothing can have changed
SELECT url_host_private_domain AS domain, change, count(*) AS pages,
  count(CASE WHEN title_changed THEN 1 END) AS titles_changed, max(change_distance) AS largest_distance
FROM pages
WHERE change IS NOT NULL
GROUP BY url_host_private_domain, change
ORDER BY url_host_private_domain, change;
