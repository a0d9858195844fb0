-- Which hosts changed their robots.txt since the last round that read it?
-- No row: no robots.txt changed, or none was read in two rounds: compare months with --all-months
SELECT domain, host, crawl, round, old_crawl, old_round, old_state, robots_state, old_digest, robots_digest
FROM (
  SELECT domain, host, crawl, round, robots_state, robots_digest,
    lag(crawl) OVER (PARTITION BY host ORDER BY crawl, round) AS old_crawl,
    lag(round) OVER (PARTITION BY host ORDER BY crawl, round) AS old_round,
    lag(robots_state) OVER (PARTITION BY host ORDER BY crawl, round) AS old_state,
    lag(robots_digest) OVER (PARTITION BY host ORDER BY crawl, round) AS old_digest
  FROM hosts
  WHERE robots_state IN ('rules', 'none')
) AS known
WHERE old_state IS NOT NULL AND (robots_state <> old_state OR coalesce(robots_digest, '') <> coalesce(old_digest, ''))
ORDER BY domain, host, crawl, round;
