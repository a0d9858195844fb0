-- What is this domain about: on how many of its pages is each topic, and how many pages of the round have it?
-- No row: no page of this domain has topics, or its rounds were planned before format 12
WITH own AS (
  SELECT crawl, round, coalesce(language, 'und') AS language, url, topics
  FROM pages
  WHERE url_host_private_domain = '{domain}' AND duplicate_of IS NULL
), named AS (
  SELECT crawl, round, language, array_distinct(flatten(array_agg(topics))) AS topics
  FROM own
  GROUP BY crawl, round, language
), counted AS (
  SELECT t.crawl, t.round, t.language, t.term, t.pages, t.sampled_pages
  FROM terms t
  JOIN named n ON n.crawl = t.crawl AND n.round = t.round AND n.language = t.language AND array_position(n.topics, t.term) > 0
)
SELECT c.crawl, c.round, c.language, c.term AS topic, count(*) AS pages, c.pages AS pages_in_language, c.sampled_pages,
  round(1 + ln((1.0 + c.sampled_pages) / (1.0 + c.pages)), 4) AS idf
FROM counted c
JOIN own o ON o.crawl = c.crawl AND o.round = c.round AND o.language = c.language AND array_position(o.topics, c.term) > 0
GROUP BY c.crawl, c.round, c.language, c.term, c.pages, c.sampled_pages
ORDER BY pages DESC, idf DESC, topic, c.language, c.crawl, c.round
LIMIT 100;
