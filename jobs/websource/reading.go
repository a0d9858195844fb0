package websource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"crawlbatch.io/crawlbatch/formats/mediatype"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/sitemap"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/source"
	"crawlbatch.io/crawlbatch/planner/source/secret"
	"crawlbatch.io/crawlbatch/stages"
)

// toldEvery is the number of files after which reading reports its progress to Options.Tell.
const toldEvery = 10

// reading is one pass over a source. It reads the files in the order in which indexes name them.
type reading struct {
	*Source
	*webClient
	yield   func(source.Entry, error) bool
	stopped bool // whether the caller wants no more entries

	seen    map[string]bool // canonical URLs of the files
	waiting []file          // files that are not read yet
	read    int             // number of files that were requested
	entries int             // number of entries so far
	bytes   int64           // length of the files so far
}

// file is a sitemap to request.
type file struct {
	url  string // absolute, as its index has it
	name string // the URL as the plan stores it
	from string // name of the index; "" for the file that the user names
	line int64  // number of the entry that names the file, in the index
}

// leftOut is the reason why a file is left out of the source.
type leftOut string

// Error implements error.
func (l leftOut) Error() string { return string(l) }

// run reads the named file and all files below it.
func (r *reading) run(ctx context.Context) error {
	r.waiting = []file{{url: r.url, name: secret.Hide(r.url)}}
	for len(r.waiting) > 0 && !r.stopped {
		f := r.waiting[0]
		r.waiting = r.waiting[1:]
		var why leftOut
		switch err := r.file(ctx, f); {
		case err == nil:
		case !errors.As(err, &why):
			return err
		case f.from == "":
			return fmt.Errorf("%s: %w", why, ErrRefused) // file left the secrets out
		default:
			r.broken(f.name, f.from, f.line, "the sitemap is left out: "+string(why))
		}
	}
	if r.entries == 0 && !r.stopped {
		return fmt.Errorf("it lists no URL: %w", ErrRefused)
	}
	return nil
}

// file requests and reads one file. If the reading can continue without the file, the error has the
// type leftOut.
func (r *reading) file(ctx context.Context, f file) error {
	switch {
	case r.bytes >= int64(r.limits.Bytes):
		return leftOut(fmt.Sprintf("fetch.sitemap_limits.bytes is %d, and the files before it have %d", r.limits.Bytes, r.bytes))
	case r.entries >= r.limits.URLs:
		return leftOut(fmt.Sprintf("fetch.sitemap_limits.urls is %d", r.limits.URLs))
	}
	key, sent, err := r.canon.Sent(f.url, "")
	if err != nil {
		return leftOut(secret.Hide(err.Error()))
	}
	if entry, ok := r.barred(key.URL, sent); ok {
		return leftOut(fmt.Sprintf("the opt-out list names it (%s)", entry))
	}
	*r.got = spool{dir: r.got.dir}
	rows, err := r.session.Fetch(ctx, f.url)
	if err != nil {
		return err
	}
	if r.got.failed != nil {
		return r.got.failed
	}
	if r.read++; r.read%toldEvery == 0 && len(r.waiting) > 0 {
		r.tell(stages.Wait{Host: key.Host, Why: fmt.Sprintf("%d of %d files of %s were read", r.read, r.read+len(r.waiting), r.name)})
	}
	if rows.Fetch == nil {
		return leftOut("it has no outcome")
	}
	if why, later := failure(rows.Fetch, f.from != "", secret.Hide); why != "" {
		if later {
			return unavailable(f, why)
		}
		if f.from != "" {
			why, _ = failure(rows.Fetch, true, secret.Hide)
		}
		return leftOut(why)
	}
	r.bytes += r.got.length
	return r.document(ctx, f)
}

// unavailable returns the error for a file that a later plan may be able to read.
func unavailable(f file, why string) error {
	if f.from != "" {
		why = secret.Hide(f.name) + ": " + why
	}
	return fmt.Errorf("%w (%s)", source.ErrUnavailable, why)
}

// failure says why a request brought no complete file, and whether a later request may succeed. It
// returns "" for a complete file, and for a file that is longer than the limit. For a file that an
// index names, later is false after a TLS error and after a 5xx other than 503: one such file must
// not keep a crawl from being planned. The function hide hides secrets.
func failure(row *schema.Fetch, ofIndex bool, hide func(string) string) (why string, later bool) {
	detail := row.Error
	if row.ErrorDetail != "" {
		detail += ": " + row.ErrorDetail
	}
	detail = hide(strings.Join(strings.Fields(cmp.Or(detail, string(row.Outcome))), " "))
	switch row.Outcome {
	case schema.OK:
		switch row.Truncated {
		case schema.TruncatedTime, schema.TruncatedDisconnect:
			return "its answer broke off (" + row.Truncated + ")", true
		}
		return "", false
	case schema.RobotsDenied:
		return fmt.Sprintf("robots.txt denies it (%s)", cmp.Or(row.RobotsRule, detail)), false
	case schema.HTTP4xx:
		return fmt.Sprintf("it answered %d", row.HTTPStatus), false
	case schema.HTTP5xx:
		return fmt.Sprintf("it answered %d", row.HTTPStatus), !ofIndex || row.HTTPStatus == 503
	case schema.RateLimited:
		return fmt.Sprintf("it answered %d", row.HTTPStatus), true
	case schema.Redirected:
		return fmt.Sprintf("it redirects to %.200q, which is not followed: name that URL", hide(row.RedirectTarget)), false
	case schema.TLSError:
		return detail, !ofIndex
	case schema.DNSError, schema.ConnectError, schema.Timeout, schema.RobotsUnreachable, schema.HostSuspended, schema.Deferred:
		return detail, true
	case schema.Stopped:
		return "requests to it are stopped (" + detail + ")", false
	}
	return detail, false
}

// document passes the entries of the last requested file to the caller.
func (r *reading) document(ctx context.Context, f file) error {
	kind, err := r.kind()
	if err != nil {
		return err
	}
	in, err := os.Open(r.got.path())
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	line, full := int64(0), false
	sum, err := sitemap.Read(in, r.lim(), func(e *sitemap.Entry) bool {
		line++
		if line%4096 == 0 && ctx.Err() != nil || r.stopped {
			return false
		}
		if full = r.entries >= r.limits.URLs; full {
			return false
		}
		r.entries++
		r.entry(e, f, kind, line)
		return !r.stopped
	})
	switch {
	case r.stopped:
	case ctx.Err() != nil:
		return stages.ErrInterrupted
	case err != nil && sum.Entries == 0:
		return leftOut(err.Error())
	case err != nil:
		r.broken(f.name, f.name, line, fmt.Sprintf("the rest of the file after entry %d is left out: %v", line, err))
	case full:
		r.broken(f.name, f.name, line, fmt.Sprintf("the file's entries from %d on are left out: fetch.sitemap_limits.urls is %d", line, r.limits.URLs))
	case sum.Cut || r.got.length >= r.most:
		r.broken(f.name, f.name, line, fmt.Sprintf("the rest of the file after entry %d is left out: it is damaged, or longer than %d bytes (fetch.max_sitemap)", line, r.most))
	}
	if sum.Skipped > 0 {
		r.broken(f.name, f.name, line, fmt.Sprintf("%d entries or lines are left out: they hold no URL, or one of more than %d bytes", sum.Skipped, sitemap.MaxLoc))
	}
	return nil
}

func (r *reading) lim() sitemap.Limits {
	return sitemap.Limits{Entries: math.MaxInt, Bytes: r.most, Charset: mediatype.Charset(r.got.contentType)}
}

// kind returns the kind of the last requested file. Only entries of feeds may belong to other sites.
func (r *reading) kind() (sitemap.Kind, error) {
	in, err := os.Open(r.got.path())
	if err != nil {
		return "", err
	}
	defer in.Close() //nolint:errcheck // read only
	sum, err := sitemap.Read(in, r.lim(), func(*sitemap.Entry) bool { return false })
	if errors.Is(err, sitemap.ErrUnknown) {
		return "", leftOut(err.Error())
	}
	return sum.Kind, nil // document reports a damaged file when it reads the entries
}

// entry passes one entry to the caller, or queues the file that an index entry names.
func (r *reading) entry(e *sitemap.Entry, f file, kind sitemap.Kind, line int64) {
	url := r.absolute(e)
	key, err := r.canon.Canonical(url, "")
	if e.Sitemap {
		r.child(url, key, err, f, line)
		return
	}
	feed := kind == sitemap.RSS || kind == sitemap.Atom || kind == sitemap.JSON
	switch {
	case err == nil && !feed && key.Domain != r.key.Domain:
		r.broken(url, f.name, line, fmt.Sprintf("the entry belongs to %s, but a sitemap of %s may list only its own URLs", key.Domain, r.key.Domain))
	default: // this includes entries that are no URL: the planner refuses and lists them
		r.pass(source.Entry{URL: url, File: f.name, Line: line, Due: true, Listed: true, Priority: priority(e)})
	}
}

// absolute returns the URL of an entry. It returns an absolute URL as the file has it, and makes
// a relative reference absolute. It returns an invalid reference unchanged.
func (r *reading) absolute(e *sitemap.Entry) string {
	if head := strings.ToLower(e.Loc[:min(len(e.Loc), len("https://"))]); strings.HasPrefix(head, "http://") || head == "https://" {
		return e.Loc
	}
	base := r.got.url
	if e.Base != "" {
		if b, err := urlkey.WHATWG(e.Base, base); err == nil && (strings.HasPrefix(b, "http:") || strings.HasPrefix(b, "https:")) {
			base = b
		}
	}
	if url, err := urlkey.WHATWG(e.Loc, base); err == nil {
		return url
	}
	return e.Loc
}

// child adds a file that an index names.
func (r *reading) child(url string, key urlkey.Key, err error, f file, line int64) {
	name := secret.Hide(url)
	switch {
	case err != nil:
		r.broken(name, f.name, line, fmt.Sprintf("the index names a sitemap without a valid URL: %s", secret.Hide(err.Error())))
	case key.Domain != r.key.Domain:
		r.broken(name, f.name, line, fmt.Sprintf("the sitemap belongs to %s, but an index of %s may name only its own: name it as a source", key.Domain, r.key.Domain))
	case r.seen[key.URL]:
	case len(r.seen) >= r.limits.Files:
		r.broken(name, f.name, line, fmt.Sprintf("the sitemap is left out: fetch.sitemap_limits.files is %d", r.limits.Files))
	default:
		r.seen[strings.Clone(key.URL)] = true
		r.waiting = append(r.waiting, file{url: urlkey.WithoutCredentials(url), name: urlkey.WithoutCredentials(name), from: f.name, line: line})
	}
}

// priority returns the priority of an entry on the scale of source.Entry.
func priority(e *sitemap.Entry) int32 {
	if !(e.Priority >= 0) {
		return source.DefaultPriority
	}
	return int32(math.Round(min(e.Priority, 1) * 1000))
}

// broken passes the caller an entry that the plan must refuse, with the reason why.
func (r *reading) broken(url, file string, line int64, why string) {
	r.pass(source.Entry{URL: url, File: file, Line: line, Due: true, Listed: true, Broken: why})
}

func (r *reading) pass(e source.Entry) {
	if !r.stopped {
		r.stopped = !r.yield(e, nil)
	}
}
