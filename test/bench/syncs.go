package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"github.com/passbook-run/passbook/internal/durable"
)

var (
	digest = regexp.MustCompile(`[0-9a-f]{12,}`)
	shard  = regexp.MustCompile(`/[0-9a-f]{2}(/|$)`)
	digits = regexp.MustCompile(`\d+`)
)

// kindOf names the files that are like that of a step: its path without digests and numbers.
func kindOf(s step) string {
	path := temporary.ReplaceAllString(s.path, "")
	path = digits.ReplaceAllString(shard.ReplaceAllString(digest.ReplaceAllString(path, "H"), "/H$1"), "N")
	if s.op == durable.OpSyncFolder {
		path += "/"
	}
	return path
}

// synced writes the table of what is synced, most first.
func synced(out io.Writer, steps []step, passes int) {
	counts := map[string]int{}
	for _, s := range steps {
		if s.syncs() {
			counts[kindOf(s)]++
		}
	}
	fmt.Fprintf(out, "\n| synced in a run of %d passes | times a pass |\n|---|--:|\n", passes)
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		if each := float64(counts[name]) / float64(passes); each >= 0.05 {
			fmt.Fprintf(out, "| %s | %.2f |\n", name, each)
		}
	}
}
