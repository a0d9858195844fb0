-- Which domains changed their robots.txt, since which round, and how much does it forbid now?
-- No row: no robots.txt changed, or none was read in two rounds: compare months with --all-months
SELECT domain, crawl, round, robots_compared, robots_host, robots_state, robots_digest, planned, outcome_robots_denied,
  round(100.0 * outcome_robots_denied / planned, 1) AS denied_percent
FROM domains
WHERE robots_changed
ORDER BY crawl DESC, round DESC, outcome_robots_denied DESC, domain
LIMIT 100;
