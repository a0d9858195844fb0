package catalog

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Markdown writes a page that documents the datasets.
func Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, `# Datasets

The datasets are Parquet files in `+"`tables/NAME/`"+`, with partitions in Hive's style. Integers are
signed, and times are microseconds UTC. A round's parts count only when the round is sealed. The views
of `+"`crawlbatch views`"+` show only sealed rounds. If Common Crawl's `+"`cc-index`"+` has a column of
the same name, type and meaning are the same too, but `+"`url`"+` is the canonical URL: the view `+"`ccindex`"+` has the
requested one. A stable column is the same in two crawls of the
same web.

| dataset | one row for |
|---|---|
`)
	for _, d := range Datasets() {
		fmt.Fprintf(out, "| [`%s`](#%s) | %s |\n", d.Name, d.Name, d.Row)
	}
	Reference(out, "##")
	return out.Flush()
}

// Reference writes a section for each dataset, with its files, order, partitions and columns. Each
// section begins with heading, a Markdown prefix such as ##.
func Reference(w io.Writer, heading string) {
	for _, d := range Datasets() {
		var partitions, folders []string
		for _, p := range d.Partitions {
			partitions = append(partitions, fmt.Sprintf("`%s` (%s): %s", p.Name, p.Type, p.Description))
			folders = append(folders, p.Name+"=…/")
		}
		fmt.Fprintf(w, "\n%s %s\n\nOne row for %s.\n\nFiles: `tables/%s/%spart-….parquet`, sorted by `%s`.\nPartitions: %s.\n\n",
			heading, d.Name, d.Row, d.Name, strings.Join(folders, ""), strings.Join(d.SortedBy, "`, `"), strings.Join(partitions, "; "))
		fmt.Fprint(w, "| column | type | null | stable | meaning |\n|---|---|---|---|---|\n")
		for _, c := range d.Columns {
			fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", c.Name, c.Type, yes(c.Nullable), yes(c.Stable),
				strings.ReplaceAll(c.Description, "|", `\|`))
		}
		if d.Name == "captures" {
			fmt.Fprintf(w, "\nThe view `%s` has one row for %s: the columns of `cc-index` by their names, in their order, and the partitions. "+
				"`url`, `url_path` and `url_query` are those of the URL that was sent, as `cc-index` has them; `url_surtkey` is the key of the canonical URL.\n", ccIndex().Name, ccIndex().Row)
		}
		if d.Name == "pages" {
			fmt.Fprintf(w, "\nThe view `%s` has one row for %s.\n\n| column | type | meaning |\n|---|---|---|\n", pageChanges.Name, pageChanges.Row)
			for _, c := range pageChanges.Columns {
				fmt.Fprintf(w, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Description)
			}
		}
		if d.Name == "domains" {
			fmt.Fprintf(w, "\nThe view `%s` has one row for %s.\n\n| column | type | meaning |\n|---|---|---|\n", allTime.name, allTime.row)
			for _, c := range allTimeDataset().Columns {
				fmt.Fprintf(w, "| `%s` | %s | %s |\n", c.Name, c.Type, c.Description)
			}
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
