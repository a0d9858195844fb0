//go:build lab

package lab

import "regexp"

// damageReasons say why no command can report the damage of some cells. Reasons that begin with
// "open" are known failures, and only known failures may excuse a loss. The first matching reason
// counts.
var damageReasons = []damageReason{
	{why: "harmless: no document names the copy, and SQL engines do not read its folder; *moved*: `verify` lists it all the same",
		cells: regexp.MustCompile(`/(manifest|[a-z-]+\.json|compaction|compacted part)/stray copy$|: (plan\.json|inputs\.json|checkpoint|taken|result|(begun )?attempt|URLs|refused|work/[a-z]+|segment of [a-z-]+)/stray copy$`)},
	{why: "harmless: only its presence counts: it says that the partition was taken",
		cells: regexp.MustCompile(`/fetch: taken/`)},
	{why: "harmless: records of attempts decide nothing; `status` reads those of ends and says if one cannot be read",
		cells: regexp.MustCompile(`: (begun )?attempt/`)},
	{why: "harmless: no round is being fetched, and the next fetch stage replaces it",
		cells: regexp.MustCompile(`^sealed/active\.json/older version$`)},
	{why: "harmless: no row of a table names its records. An attempt that died leaves such files, so `verify` counts it in a note; *moved*: it moves it away",
		cells: regexp.MustCompile(`^(sealed|reducing)/(WARC file|CDXJ index)/stray copy$`)},
}
