package stages

import "crawlbatch.io/crawlbatch/formats/urlstate"

// The datasets of the files in each stage's results (manifest.File.Dataset), and the places of
// these files:
//
//	fetch     fetches requests captures pages text         segments (layout.Segment), several of each
//	          linksets                                     pages of segments are rows of schema.WorkingPage, texts
//	                                                       rows of schema.WorkingText, and linksets rows of
//	                                                       schema.LinkSet
//	          robots                                       the same; working file, read by the task's next attempt
//	          sitemaps                                     the same
//	          warc cdxj                                    layout.WARC, layout.CDXJ; none in a reparse of external WARC files
//	          a reparse writes one file each of pages, text, linksets and the captures of subset warc, as
//	          epoch 0, and lists the other files of the fetch task whose responses it reads
//	merge     captures fetches requests text links         published (layout.Captures, one file for each subset;
//	                                                       layout.Table)
//	          pages hostedges hosts sitemaps               working (layout.Working), inputs of the reduces;
//	                                                       pages has rows of schema.WorkingPage, with the counts of
//	                                                       the 128 most frequent terms, which publish drops
//	          targets redirects                            runs (layout.Run) with a section for each bucket
//	          terms                                        run with a section for each bucket of terms
//	digest    classes exact                                working, one for each shard of the text digests; rows of
//	                                                       schema.ClassMember, inputs of similar and cluster
//	similar   pairs                                        working, one for each shard of the search keys
//	cluster   verdicts                                     run with a section for each bucket that has rows
//	dedup     duplicates                                   published, one part for each bucket (of the page's domain)
//	          representatives                              working, one for each bucket, read by later rounds
//	rank      inlinks                                      working, one for each bucket (of the target's domain)
//	          hosts                                        published, one part for each bucket (of the host's domain);
//	                                                       the task of bucket 0 writes all parts
//	          webgraph                                     text files (layout.WebGraph) of the task of bucket 0
//	          terms                                        published, one part for each bucket of terms
//	frontier  urls skips                                   published, one part for each bucket
//	          known                                        working (layout.URLFilter), one for each bucket: the Bloom
//	                                                       file of the URLs in the bucket's parts of urls and skips
//	          urls-base                                    working (layout.Working), for some buckets: the states of
//	                                                       all known URLs (package urlstate)
//	publish   pages                                        published, one part for each partition
//	          domains                                      published, one part for each bucket; the task of the bucket's
//	                                                       first partition writes it, and later rounds read it
//
// No task writes the datasets stages and runs. The process that seals the round writes one part of
// each, from the records of attempts.
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
	FileLinkSets        = "linksets"
	FileRobots          = "robots"
	FileSitemaps        = "sitemaps"
	FileWARC            = "warc"
	FileCDXJ            = "cdxj"
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
	FileDomains         = "domains"
	FileTerms           = "terms"
	FileStages          = "stages"
	FileRuns            = "runs"
)
