package sql

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/owner"
	"crawlbatch.io/crawlbatch/jobs/roundstate"
)

//go:embed queries/*.sql
var cookbook embed.FS

// Question is a file of the cookbook.
type Question struct {
	Name string
	Asks string // the question, from the first line
	None string // what an answer without rows means, from the second line, or "" if that line is SQL
	SQL  string // the whole file
	Of   string // what the question is about: url, host, domain, term, or "" for the whole crawl
}

// names matches names of questions. No SQL statement consists of one such word.
var names = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// limited matches the limit at the end of a question's SQL.
var limited = regexp.MustCompile(`\nLIMIT (\d+);\n*$`)

// place matches the place of an argument in a question's SQL.
var place = regexp.MustCompile(`'\{(url|host|domain|term)\}'`)

// Questions returns the cookbook in the order of names.
func Questions() ([]Question, error) {
	files, err := fs.Glob(cookbook, "queries/*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]Question, len(files))
	for i, file := range files {
		text, err := cookbook.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitN(string(text), "\n", 3)
		all[i] = Question{
			Name: strings.TrimSuffix(strings.TrimPrefix(file, "queries/"), ".sql"),
			Asks: strings.TrimPrefix(lines[0], "-- "),
			SQL:  string(text),
		}
		if none, ok := strings.CutPrefix(lines[1], "-- No row: "); ok {
			all[i].None = none
		}
		if m := place.FindStringSubmatch(all[i].SQL); m != nil {
			all[i].Of = m[1]
		}
	}
	return all, nil
}

// usage returns the words that ask q on a command line.
func (q Question) usage() string {
	return strings.TrimSpace(q.Name + " " + strings.ToUpper(q.Of))
}

// Fill returns the SQL of q about a URL, host, domain or term, which may be written in any way. A URL
// becomes canonical by the rules of the crawls; without any, by the standard rules.
func (q Question) Fill(argument string, rules ...*urlkey.Canonicalizer) (string, error) {
	value := ""
	switch q.Of {
	case "":
	case "term":
		value = strings.ToLower(strings.Join(strings.Fields(argument), " "))
	case "url":
		urls, err := knownAs(argument, rules)
		if err != nil {
			return "", usage.Error(err)
		}
		return place.ReplaceAllLiteralString(q.SQL, strings.Join(urls, ", ")), nil
	default:
		target, err := owner.Parse(argument, false)
		if err != nil {
			return "", usage.Error(err)
		}
		if value = target.Host; q.Of == "domain" {
			value = target.Domain
		}
	}
	return place.ReplaceAllLiteralString(q.SQL, quote(value)), nil
}

// fillFor fills in the argument by the rules of the crawls of sealed rounds.
func (q *Question) fillFor(ctx context.Context, b store.Bucket, sealed []*manifest.Sealed, argument string) (err error) {
	var crawls []string
	for _, s := range sealed {
		if q.Of == "url" && s.Round == 0 {
			crawls = append(crawls, s.Crawl)
		}
	}
	rules, err := roundstate.Canonicalizers(ctx, b, crawls)
	if err == nil {
		q.SQL, err = q.Fill(argument, rules...)
	}
	return err
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// knownAs returns the quoted URLs under which crawls with the given rules may know a URL: as a link,
// and as the target of a redirect.
func knownAs(text string, rules []*urlkey.Canonicalizer) (urls []string, err error) {
	if len(rules) == 0 {
		standard, err := urlkey.New(nil)
		if err != nil {
			return nil, err
		}
		rules = append(rules, standard)
	}
	for _, r := range rules {
		for _, c := range []*urlkey.Canonicalizer{r, r.Plain()} {
			u, failed := c.URL(text, "")
			if failed != nil {
				err = failed
			} else if u = quote(u); !slices.Contains(urls, u) {
				urls = append(urls, u)
			}
		}
	}
	if len(urls) > 0 {
		return urls, nil // the rewrites of one crawl may fail
	}
	return nil, err
}

// question returns the question with a name, after it has checked the argument in args.
func question(name string, args []string) (*Question, error) {
	all, err := Questions()
	if err != nil {
		return nil, err
	}
	near, distance := "", min(4, len(name)/2+1)
	for _, q := range all {
		switch {
		case q.Name != name:
			if d := config.EditDistance(name, q.Name); d < distance {
				near, distance = q.Name, d
			}
			continue
		case q.Of == "" && len(args) > 0:
			return nil, usage.Errorf("%q follows %s, which takes no argument", args[0], name)
		case q.Of != "" && len(args) == 0:
			return nil, usage.Errorf("%s is about one %s: give it as `crawlbatch query %s`", name, q.Of, q.usage())
		}
		_, err = q.Fill(append(args, "")[0])
		return &q, err
	}
	if near != "" {
		return nil, usage.Errorf("%q is neither SQL nor a question of the cookbook: did you mean %s?", name, near)
	}
	return nil, usage.Errorf("%q is neither SQL nor a question of the cookbook: `crawlbatch query --list` prints the questions", name)
}

// completeQuestion completes the names of questions.
func completeQuestion(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := Questions()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, q := range all {
		found = append(found, fmt.Sprintf("%s\t%s", q.Name, q.Asks))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
