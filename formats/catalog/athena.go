package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
)

// AthenaOptions are options for Athena's tables.
type AthenaOptions struct {
	Database string
	// Projection selects partition projection: Athena computes the folders of partitions from ranges
	// of values. Without Projection, the script lists the folders of the sealed rounds.
	Projection bool
	// Compacted are the sealed rounds that name parts of compacted copies. The script opens these parts as
	// tables of their own, NAME_copy_CRAWL. Athena takes the round of a row from the table's partition, so a
	// table of published parts cannot have rows of a copy.
	Compacted []*manifest.Sealed
}

// Athena returns the DDL that opens every dataset of the store at root, such as s3://bucket/prefix.
// Without o.Projection, the tables have only sealed rounds. The DDL drops and recreates existing
// tables, because an older table lacks newer columns. The tables are external, so dropping a table
// deletes no data. Athena finds the columns of Parquet files by name, and returns null for columns
// that a file lacks.
func Athena(root string, o AthenaOptions, sealed []*manifest.Sealed) (*Script, error) {
	if !strings.HasPrefix(root, "s3://") {
		return nil, fmt.Errorf("Athena reads only from S3, but the store is %q: use --store s3://bucket/prefix", root)
	}
	root = strings.TrimSuffix(root, "/")
	if err := errors.Join(CheckDatabase(o.Database), CheckAddress(root), checkSealed(sealed), checkSealed(o.Compacted)); err != nil {
		return nil, err
	}
	s := newScript(root, sealed)
	if o.Projection {
		s.Head = []string{
			fmt.Sprintf("The datasets of %s, by partition projection. Rounds that are sealed today: %s.", root, rounds(sealed)),
			"WARNING: Athena reads whatever the folders hold. While a round runs, queries see some of its rows before it is sealed.",
			"To read only finished rounds, generate the DDL without --partition-projection.",
			projectionScope(sealed),
		}
	}
	s.add("database", "CREATE DATABASE IF NOT EXISTS `%s`", o.Database)
	for _, d := range Datasets() {
		table := fmt.Sprintf("`%s`.`%s`", o.Database, tableName(d))
		s.add(tableName(d)+"-drop", "DROP TABLE IF EXISTS %s", table)
		location := root + "/tables/" + d.Name + "/"
		properties := [][2]string{{"classification", "parquet"}}
		if o.Projection {
			properties = append(properties, projection(location, d, sealed)...)
		}
		s.add(tableName(d)+"-table", "CREATE EXTERNAL TABLE %s (\n%s\n)\nCOMMENT %s\nPARTITIONED BY (\n%s\n)\nSTORED AS PARQUET\nLOCATION %s\nTBLPROPERTIES (%s)",
			table, hiveColumns(d.Columns), hiveLiteral(plain("One row for "+d.Row+".")), hiveColumns(d.Partitions),
			hiveLiteral(location), tableProperties(properties))
		if !o.Projection {
			athenaPartitions(s, table, root, d, sealed)
		}
		_, copied := folders(d.Name, o.Compacted)
		for _, folder := range copied {
			name := copyName(d, folder)
			s.add(name+"-drop", "DROP TABLE IF EXISTS `%s`.`%s`", o.Database, name)
			s.add(name+"-table", "CREATE EXTERNAL TABLE `%s`.`%s` (\n%s\n)\nCOMMENT %s\nSTORED AS PARQUET\nLOCATION %s\nTBLPROPERTIES ('classification'='parquet')",
				o.Database, name, hiveColumns(slices.Concat(d.Columns, d.Partitions)), hiveLiteral(plain("One row for "+d.Row+", of all rounds that were compacted.")), hiveLiteral(root+"/"+folder+"/"))
		}
		if d.Name == "captures" {
			s.add(ccIndex().Name+"-view", "CREATE OR REPLACE VIEW \"%s\".\"%s\" AS\n%s", o.Database, ccIndex().Name, ccIndexQuery(fmt.Sprintf(`"%s"."captures"`, o.Database)))
		}
		if d.Name == "urls" {
			s.add("urls-view", "CREATE OR REPLACE VIEW \"%s\".\"urls\" AS\n%s", o.Database,
				newest(fmt.Sprintf(`"%s"."urls_history"`, o.Database), quoted(slices.Concat(d.Columns, d.Partitions), `"`), sealed))
		}
		if d.Name == "pages" {
			in := func(view string) string { return fmt.Sprintf(`"%s"."%s"`, o.Database, view) }
			s.add(pageChanges.Name+"-view", "CREATE OR REPLACE VIEW %s AS\n%s", in(pageChanges.Name), pageChangesQuery(in("pages"), in("fetches"), bitsTrino, sealed))
		}
		if d.Name == "domains" {
			s.add(allTime.name+"-view", "CREATE OR REPLACE VIEW \"%s\".\"%s\" AS\n%s", o.Database, allTime.name, allTimeQuery(fmt.Sprintf(`"%s"."domains"`, o.Database), sealed))
		}
	}
	return s, nil
}

func tableProperties(properties [][2]string) string {
	return joined(properties, ",\n  ", func(p [2]string) string { return hiveLiteral(p[0]) + "=" + hiveLiteral(p[1]) })
}

// athenaPartitions adds statements that register the folders of sealed rounds. Each statement names at
// most 500 folders, because a statement of Athena has at most 256 KiB.
func athenaPartitions(s *Script, table, root string, d Dataset, sealed []*manifest.Sealed) {
	n := 0
	published, _ := folders(d.Name, sealed)
	for some := range slices.Chunk(published, 500) {
		var b strings.Builder
		for _, folder := range some {
			spec := partitionValues(folder, d)
			for i, c := range d.Partitions {
				if c.Type == String {
					spec[i] = hiveLiteral(spec[i])
				}
				spec[i] = fmt.Sprintf("`%s` = %s", c.Name, spec[i])
			}
			fmt.Fprintf(&b, "\n  PARTITION (%s) LOCATION %s", strings.Join(spec, ", "), hiveLiteral(root+"/"+folder+"/"))
		}
		name := tableName(d) + "-partitions"
		if n++; n > 1 {
			name += fmt.Sprint("-", n)
		}
		s.add(name, "ALTER TABLE %s ADD IF NOT EXISTS%s", table, b.String())
	}
}

// projectedRounds is the number of rounds of each crawl that partition projection covers. Athena
// lists a folder for each of them, whether it exists or not, so a larger number would slow queries.
const projectedRounds = 100

// projection returns the table properties with which Athena computes the partitions.
func projection(location string, d Dataset, sealed []*manifest.Sealed) [][2]string {
	out := [][2]string{{"projection.enabled", "true"}}
	for _, c := range d.Partitions {
		key := "projection." + c.Name
		switch c.Name {
		case "crawl":
			kind, values := projectedCrawls(sealed)
			out = append(out, [2]string{key + ".type", kind})
			if kind == "enum" {
				out = append(out, [2]string{key + ".values", values})
			} else {
				out = append(out, [2]string{key + ".format", "yyyy-MM"}, [2]string{key + ".range", values},
					[2]string{key + ".interval", "1"}, [2]string{key + ".interval.unit", "MONTHS"})
			}
		case "subset":
			out = append(out, [2]string{key + ".type", "enum"}, [2]string{key + ".values", strings.Join(subsets, ",")})
		case "round":
			out = append(out, [2]string{key + ".type", "integer"}, [2]string{key + ".range", fmt.Sprintf("0,%d", projectedRounds-1)})
		}
		location += c.Name + "=${" + c.Name + "}/"
	}
	return append(out, [2]string{"storage.location.template", location})
}

// projectedCrawls returns the projection type and the values of the column crawl. If all sealed
// rounds belong to one crawl, or all to reparses, the values are names. Otherwise they are a range of
// months, which does not include reparses.
func projectedCrawls(sealed []*manifest.Sealed) (kind, values string) {
	var names, months []string
	for _, s := range sealed {
		names = append(names, s.Crawl)
		if !layout.IsReparse(s.Crawl) {
			months = append(months, s.Crawl)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 1 || len(months) == 0 && len(names) > 0 {
		return "enum", strings.Join(names, ",")
	}
	first := "2020-01"
	if len(months) > 0 {
		first = slices.Min(months)
	}
	return "date", first + ",NOW"
}

// projectionScope returns a comment that says which crawls and rounds a projection covers.
func projectionScope(sealed []*manifest.Sealed) string {
	kind, values := projectedCrawls(sealed)
	if kind == "enum" {
		return fmt.Sprintf("It covers %s, rounds 0 to %d.", values, projectedRounds-1)
	}
	first, _, _ := strings.Cut(values, ",")
	return fmt.Sprintf("It covers the months from %s to today, rounds 0 to %d, but no reparses: open a reparse by its name with --month.", first, projectedRounds-1)
}
