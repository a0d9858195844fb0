package sql

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"crawlbatch.io/crawlbatch/cmd/usage"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/jobs/config"
	"crawlbatch.io/crawlbatch/jobs/owner"
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

// Fill returns the SQL of q about a URL, host, domain or term, which may be spelled in any way.
func (q Question) Fill(argument string) (string, error) {
	value := ""
	switch q.Of {
	case "":
	case "term":
		value = strings.ToLower(strings.Join(strings.Fields(argument), " "))
	case "url":
		canonical, err := urlkey.New(nil)
		if err != nil {
			return "", err
		}
		if value, err = canonical.URL(argument, ""); err != nil {
			return "", usage.Error(err)
		}
	default:
		target, err := owner.Parse(argument, false)
		if err != nil {
			return "", usage.Error(err)
		}
		if value = target.Host; q.Of == "domain" {
			value = target.Domain
		}
	}
	quoted := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	return place.ReplaceAllLiteralString(q.SQL, quoted), nil
}

// question returns the question with a name. Its SQL is about the argument in args.
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
		q.SQL, err = q.Fill(append(args, "")[0])
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
