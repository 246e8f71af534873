package workflows_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/test/histories"
)

var recordFrom = flag.String("record", "", "choose the historiesDir histories afresh from those in this folder")

// TestRecord replaces the stored histories by those of a folder which, from the smallest on, have a required part that
// no smaller one has, or execute another statement.
func TestRecord(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("histories are recorded with -record FOLDER only")
	}
	require.NotEmpty(t, testing.CoverMode(), "record with -cover")
	all, chosen, missing := historiesIn(t, *recordFrom), []string{}, required(t)
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Compare(proto.Size(all[a]), proto.Size(all[b]))
	}) {
		before := testing.Coverage()
		if histories.Replay(all[name], histories.Options{}) != nil {
			continue // recorded by other code, or with a secret that only its worker removes
		}
		widens := testing.Coverage() > before
		adds := slices.DeleteFunc(partsOf(t, all[name]), func(p histories.Part) bool {
			return !slices.ContainsFunc(missing, func(m histories.Part) bool { return m.Covers(p) }) ||
				plantable(p) && !detects(all[name], p)
		})
		if widens || len(adds) > 0 {
			chosen, missing = append(chosen, name), without(missing, adds)
		}
	}
	require.Empty(t, missing, "no test of test/e2e executes these")
	old, err := filepath.Glob(filepath.Join(historiesDir, "*"+histories.Suffix)) // beside them is the list of releases
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	for _, name := range chosen {
		require.NoError(t, histories.Write(historiesDir, name, all[name]))
	}
	t.Logf("stored %d of %d histories", len(chosen), len(all))
}

var freeze = flag.String("freeze", "", "list the historiesDir histories as those of this release, such as v0.1.0")

// releasedFile lists the histories of each release: a line "# v0.1.0", then digests and names as sha256sum prints them.
const releasedFile = historiesDir + "/released.sha256"

var datedRelease = regexp.MustCompile(`(?m)^## \[([0-9][^\]]*)\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// TestReleasedHistoriesAreKept: a run that a release began must replay in all later ones, so its histories stay as they
// are. A release has a list once the changelog dates it.
func TestReleasedHistoriesAreKept(t *testing.T) {
	if *freeze != "" {
		freezeHistories(t, *freeze)
	}
	raw, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	changelog, err := os.ReadFile("../CHANGELOG.md")
	require.NoError(t, err)
	require.NoError(t, kept(string(raw), string(changelog), historiesDir))
}

// kept checks a list of released histories.
func kept(list, changelog, folder string) error {
	var releases []string
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if release, ok := strings.CutPrefix(line, "# "); ok {
			releases = append(releases, release)
			continue
		}
		want, name, _ := strings.Cut(line, "  ")
		if name == "" {
			continue
		}
		got, err := digestOf(filepath.Join(folder, name))
		if err != nil || got != want {
			return fmt.Errorf("%s, a history of %s, is missing or changed: restore it, and record new ones beside it",
				name, releases[len(releases)-1])
		}
	}
	for _, m := range datedRelease.FindAllStringSubmatch(changelog, -1) {
		if !slices.Contains(releases, "v"+m[1]) {
			return fmt.Errorf("the changelog dates %s, whose histories are not listed: go test ./workflows "+
				"-run TestReleasedHistories -freeze v%[1]s", m[1])
		}
	}
	return nil
}

func digestOf(path string) (string, error) {
	raw, err := os.ReadFile(path)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

func freezeHistories(t *testing.T, release string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(historiesDir, "*"+histories.Suffix))
	require.NoError(t, err)
	f, err := os.OpenFile(releasedFile, os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "# %s\n", release)
	require.NoError(t, err)
	for _, path := range paths {
		digest, err := digestOf(path)
		require.NoError(t, err)
		_, err = fmt.Fprintf(f, "%s  %s\n", digest, filepath.Base(path))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

func TestLostReleasedHistoryIsFound(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json.gz")
	require.NoError(t, os.WriteFile(path, []byte("history"), 0o600))
	digest, err := digestOf(path)
	require.NoError(t, err)
	list := "# v0.1.0\n" + digest + "  a.json.gz\n"
	require.NoError(t, kept(list, "## [0.1.0] - 2027-01-02\n", dir))
	require.NoError(t, kept("", "## [0.1.0] - unreleased\n", dir))
	require.ErrorContains(t, kept("", "## [0.1.0] - 2027-01-02\n", dir), "-freeze v0.1.0")
	require.NoError(t, os.WriteFile(path, []byte("another"), 0o600))
	require.ErrorContains(t, kept(list, "", dir), "a.json.gz, a history of v0.1.0, is missing or changed")
	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, kept(list, "", dir), "is missing or changed")
}
