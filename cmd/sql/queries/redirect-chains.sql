-- Which URLs need several redirects, or never end?
-- No row: no URL needed more than one redirect, or redirects without end
SELECT url, redirects, outcome, final_url, redirect_target
FROM fetches
WHERE redirects > 1 OR outcome = 'redirect_limit'
ORDER BY redirects DESC, url, outcome;
