package stages

import "crawlbatch.io/crawlbatch/formats/urlstate"

// The datasets of the files in each stage's results (manifest.File.Dataset), and the places of
// these files:
//
//	fetch     fetches requests captures pages text links   segments (layout.Segment), several of each
//	                                                       pages of segments are rows of schema.WorkingPage
//	          robots                                       the same; working file, read by the task's next attempt
//	          sitemaps                                     the same, since format 6
//	          warc cdxj                                    layout.WARC, layout.CDXJ; none in a reparse of external WARC files
//	          a reparse lists the files of the fetch task that it reads, except captures of subset
//	          warc, pages, text and links, of which it writes one file each, as epoch 0
//	merge     captures (one a subset) fetches requests text links   published (layout.Captures, layout.Table)
//	          pages hostedges hosts sitemaps               working (layout.Working), inputs of the reduces;
//	                                                       sitemaps since format 6
//	          targets redirects                            runs (layout.Run) with a section for each bucket; rounds
//	                                                       of format 3 and older have the working file edges in
//	                                                       place of targets, and no redirects;
//	                                                       pages are rows of schema.WorkingPage, with the counts of
//	                                                       their 50 most frequent terms, which publish drops
//	digest    classes exact                                working, one a shard of the digests; rows of
//	                                                       schema.ClassMember, inputs of similar and cluster
//	similar   pairs                                        working, one a shard of the keys of fingerprints
//	cluster   verdicts                                     run with a section for each bucket that has rows
//	dedup     duplicates                                   published, one part a bucket (of the member's domain)
//	          representatives                              working, one a bucket, read by later rounds
//	rank      inlinks                                      working, one a bucket (of the target's domain)
//	          hosts                                        published, one part a bucket (of the host's domain);
//	                                                       since format 4, the task of bucket 0 writes all parts
//	          webgraph                                     text files (layout.WebGraph) of the task of bucket 0,
//	                                                       since format 4
//	frontier  urls skips                                   published, one part a bucket
//	          known                                        working (layout.URLFilter), one a bucket: the Bloom file of
//	                                                       the URLs in its urls and skips, read as long as these parts are
//	          urls-base                                    working (layout.Working), for some buckets: the states of
//	                                                       all known URLs (package urlstate)
//	publish   pages                                        published, one part a partition
//
// No task makes the datasets stages and runs. Whoever seals a round of format 9 or newer writes one
// part of each before, from the records of attempts.
//
// Every part is written, even if it has no rows, so that each dataset can be opened from
// the first round on. Working and published rows are sorted by
// (url_surtkey, url) unless the row type says otherwise.
const (
	FileFetches         = "fetches"
	FileRequests        = "requests"
	FileCaptures        = "captures"
	FilePages           = "pages"
	FileText            = "text"
	FileLinks           = "links"
	FileRobots          = "robots"
	FileSitemaps        = "sitemaps"
	FileWARC            = "warc"
	FileCDXJ            = "cdxj"
	FileEdges           = "edges"
	FileTargets         = "targets"
	FileRedirects       = "redirects"
	FileHostEdges       = "hostedges"
	FileHosts           = "hosts"
	FileClasses         = "classes"
	FileExact           = "exact"
	FilePairs           = "pairs"
	FileVerdicts        = "verdicts"
	FileDuplicates      = "duplicates"
	FileRepresentatives = "representatives"
	FileInlinks         = "inlinks"
	FileURLs            = urlstate.Delta
	FileURLsBase        = urlstate.Base
	FileSkips           = "skips"
	FileURLFilter       = urlstate.Filter
	FileWebGraph        = "webgraph"
	FileStages          = "stages"
	FileRuns            = "runs"
)
