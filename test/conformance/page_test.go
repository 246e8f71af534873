package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	pageRow  = regexp.MustCompile(`(?m)^- ([A-Z]{2}-\d\d): (.+?)(?: \(([^()]*\x60(?:e2e\.)?Test[^()]*)\))?$`)
	testName = regexp.MustCompile("\x60" + `((?:e2e\.)?Test\w+(?:/[\w-]+)?)` + "\x60")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// groupSizes is how many rows the checklist has in each group.
var groupSizes = map[string]int{
	"ST": 35, "PR": 11, "PC": 7, "CK": 18, "ER": 4, "CO": 9, "LG": 26, "RS": 22, "AV": 3, "AT": 4, "IN": 1, "BR": 3,
	"RX": 27, "AR": 10, "TM": 14,
	"LC": 11, "CL": 12, "IV": 10, "PX": 14,
}

// TestPageIsComplete holds docs/conformance.md to the checklist and to the tests.
func TestPageIsComplete(t *testing.T) {
	t.Parallel()
	page := string(read(t, filepath.Join(project, "docs", "conformance.md")))
	page = strings.ReplaceAll(page, "\n  ", " ") // a row of several lines
	sizes, seen, all, scripts := map[string]int{}, map[string]bool{}, allRows(t), scriptRows(t)
	for _, m := range pageRow.FindAllStringSubmatch(page, -1) {
		id, by := m[1], m[3]
		if all[id] != nil {
			by += "`TestRows/" + id + "`"
		}
		require.False(t, seen[id], "%s is listed twice", id)
		seen[id] = true
		group, _, _ := strings.Cut(id, "-")
		sizes[group]++
		require.True(t, testName.MatchString(by), "%s names a test: %s", id, by)
		for _, n := range testName.FindAllStringSubmatch(by, -1) {
			if script, ok := strings.CutPrefix(n[1], "TestScripts/"); ok {
				require.Contains(t, scripts[id], script, "the script does not name %s", id)
				continue
			}
			exists(t, all, n[1])
		}
		for _, name := range scripts[id] {
			require.Contains(t, by, "`TestScripts/"+name+"`", "a script shows %s, and the page does not say so", id)
		}
	}
	require.Equal(t, groupSizes, sizes)
	for id := range all {
		require.True(t, seen[id], "there is no row %s", id)
	}
}

// exists wants a test of that name: a row here, a function here, or one in e2e.
func exists(t *testing.T, all rows, name string) {
	t.Helper()
	if id, ok := strings.CutPrefix(name, "TestRows/"); ok {
		require.Contains(t, all, id, "no test shows %s", name)
		return
	}
	folder := "conformance"
	if in, ok := strings.CutPrefix(name, "e2e."); ok {
		folder, name = "e2e", in
	}
	files, err := filepath.Glob(filepath.Join(project, "test", folder, "*_test.go"))
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range testFunc.FindAllStringSubmatch(string(raw), -1) {
			names = append(names, m[1])
		}
	}
	require.Contains(t, names, name, "folder %s", folder)
}
