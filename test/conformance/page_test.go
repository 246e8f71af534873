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
	pageRow  = regexp.MustCompile(`(?m)^- ([A-Z]{2}-\d\d): (.+?)(?: \(([^()]*\x60(?:\w+\.)?Test[^()]*)\))?$`)
	testName = regexp.MustCompile("\x60" + `(?:(\w+)\.)?(Test\w+)(?:/([\w-]+))?` + "\x60")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// groupSizes is the number of rows of the checklist in each group.
var groupSizes = map[string]int{
	"ST": 35, "PR": 11, "PC": 7, "CK": 18, "ER": 4, "CO": 9, "LG": 26, "RS": 22, "AV": 3, "AT": 4, "IN": 1, "BR": 3,
	"RX": 27, "AR": 10, "TM": 14,
	"LC": 11, "CL": 12, "IV": 10, "PX": 14, "OP": 18,
}

// TestPageIsComplete compares README.md with the checklist and with the tests.
func TestPageIsComplete(t *testing.T) {
	t.Parallel()
	page := string(read(t, "README.md"))
	page = strings.ReplaceAll(page, "\n  ", " ") // a row of several lines
	sizes, seen, checked, scripts := map[string]int{}, map[string]bool{}, map[string]bool{}, scriptRows(t)
	for ids := range allRows(t) {
		for id := range strings.FieldsSeq(ids) {
			require.False(t, checked[id], "two checks have the id %s", id)
			checked[id] = true
		}
	}
	for _, m := range pageRow.FindAllStringSubmatch(page, -1) {
		id, by := m[1], m[3]
		require.False(t, seen[id], "%s is listed twice", id)
		seen[id] = true
		group, _, _ := strings.Cut(id, "-")
		sizes[group]++
		named := testName.FindAllStringSubmatch(by, -1)
		require.True(t, checked[id] || len(named) > 0, "%s has no test", id)
		for _, n := range named {
			switch pkg, name, sub := n[1], n[2], n[3]; {
			case pkg != "":
				require.True(t, hasTest(t, pkg, name), "%s: no test %s in package %s", id, name, pkg)
				if sub != "" {
					require.FileExists(t, filepath.Join(project, "internal", pkg, "testdata", "script", sub+".txtar"))
				}
			case name == "TestScripts":
				require.Contains(t, scripts[id], sub, "the head of the script does not name %s", id)
			default:
				require.Equal(t, "TestRows", name)
				require.True(t, checked[sub], "%s: no test shows %s", id, sub)
			}
		}
		for _, name := range scripts[id] {
			require.Contains(t, by, "`TestScripts/"+name+"`", "the page omits a script of %s", id)
		}
	}
	require.Equal(t, groupSizes, sizes)
	for id := range checked {
		require.True(t, seen[id], "the page has no row %s", id)
	}
}

// hasTest reports whether a package of this module has a test of that name.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	for _, parent := range []string{"test", "internal", ""} {
		files, err := filepath.Glob(filepath.Join(project, parent, pkg, "*_test.go"))
		require.NoError(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range testFunc.FindAllStringSubmatch(string(raw), -1) {
				if m[1] == name {
					return true
				}
			}
		}
	}
	return false
}
