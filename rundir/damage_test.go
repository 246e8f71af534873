package rundir_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

var update = flag.Bool("update", false, "rewrite testdata/findings.txt")

// damage is one row of the table: how a directory is damaged. testdata/findings.txt has what check finds, what a repair
// changes, and what check finds then.
type damage struct {
	name string
	dir  string // name of the healthy directory
	do   change
}

// change damages a directory.
type change = func(t *testing.T, d rundir.Dir)

func damages() []damage {
	return slices.Concat(metaDamages(), journalDamages(), fileDamages(), projectDamages())
}

func together(changes ...change) change {
	return func(t *testing.T, d rundir.Dir) {
		for _, do := range changes {
			do(t, d)
		}
	}
}

func nothing(*testing.T, rundir.Dir) {}

// withKey sets a key of meta.json.
func withKey(name, value string) change {
	return func(t *testing.T, d rundir.Dir) { setKey(t, d, name, value) }
}

func withFile(name, text string) change {
	return func(t *testing.T, d rundir.Dir) { write(t, d, name, text) }
}

func without(names ...string) change {
	return func(t *testing.T, d rundir.Dir) {
		for _, name := range names {
			require.NoError(t, os.RemoveAll(d.Path(name)))
		}
	}
}

// with appends a text to a file.
func with(name, text string) change {
	return func(t *testing.T, d rundir.Dir) { appendTo(t, d, name, text) }
}

// edited changes the text of a file.
func edited(name string, edit func(string) string) change {
	return func(t *testing.T, d rundir.Dir) {
		text := read(t, d, name)
		after := edit(text)
		require.NotEqual(t, text, after)
		write(t, d, name, after)
	}
}

// swapped replaces the first match of a pattern in a file.
func swapped(name, pattern, with string) change {
	return edited(name, func(text string) string {
		at := regexp.MustCompile(pattern).FindStringIndex(text)
		return text[:at[0]] + with + text[at[1]:]
	})
}

// withLines edits the lines of events.jsonl, which keep their line feeds.
func withLines(edit func([]string) []string) change {
	return edited(rundir.EventsFile, func(text string) string {
		return strings.Join(edit(strings.SplitAfter(text, "\n")), "")
	})
}

// oneByte changes one letter or digit of a file.
func oneByte(name string) change {
	return edited(name, func(text string) string { return string(changedByte([]byte(text), 2)) })
}

func cutInHalf(name string) change {
	return edited(name, func(text string) string { return text[:len(text)/2] })
}

// withDecision adds a decision on a hand-off.
func withDecision(id, action string) change {
	return withFile("phase_handoff_decisions/"+id+".json",
		`{"run_id":"r","handoff_id":"`+id+`","phase":"plan","action":"`+action+
			`","decided_at":"2026-01-02T04:00:00+00:00"}`)
}

// TestDamagesOfDirectories damages a directory of each kind, and compares what check finds, what a repair changes, and
// what check finds then.
func TestDamagesOfDirectories(t *testing.T) {
	texts := readFindings(t)
	for _, dir := range directories() {
		master, blobs := dir.write(t)
		require.Equal(t, dir.codes, codesOf(check(t, master)), "%s: %+v", dir.name, check(t, master).Issues)
		for _, row := range damages() {
			if row.dir != dir.name {
				continue
			}
			t.Run(dir.name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				d := copyOf(t, master)
				row.do(t, d)
				hurt := look(t, d)
				report := check(t, d)
				o := rundir.RepairOptions{Blobs: blobs}
				dry, err := rundir.Repair(t.Context(), d, o)
				require.NoError(t, err)
				require.Equal(t, append([]rundir.Code{}, codesOf(report)...), dry.IssueCodes)
				require.False(t, dry.Applied)
				require.Equal(t, hurt, look(t, d), "check and dry run only read")

				o.Apply = true
				done, err := rundir.Repair(t.Context(), d, o)
				require.NoError(t, err)
				require.Equal(t, dry.Changes, done.Changes)
				require.Equal(t, len(dry.Changes) > 0, done.Applied)
				repaired := look(t, d)
				if slices.ContainsFunc(dry.Changes, func(c rundir.Change) bool { return strings.Contains(c.Found, "lacks the last") }) {
					delete(hurt, rundir.MetaFile) // it was only older
				}
				requireKept(t, hurt, repaired)
				texts.compare(t, dir.name+": "+row.name, findings(d, report, dry, check(t, d)))
				again, err := rundir.Repair(t.Context(), d, o)
				require.NoError(t, err)
				require.False(t, again.Applied)
				require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
			})
		}
	}
}

// requireKept requires that what was in a directory is still somewhere in it, except for a link to a log.
func requireKept(t *testing.T, before, after map[string]string) {
	t.Helper()
	all := slices.Collect(maps.Values(after))
	for name, text := range before {
		begins := strings.HasPrefix(after[name], text) // a log that lacked rows
		tail := strings.TrimPrefix(text, after[name])  // a journal with half a line
		require.True(t, begins || slices.Contains(all, text) || slices.Contains(all, tail) || name == rundir.SpendFile,
			"%s is lost", name)
	}
}

// TestDocsListEveryCode: docs/run-state.md lists each code once, in the order of the program. A row of the table shows it, unless it is not in the directory: a lost workflow, damage in the store.
func TestDocsListEveryCode(t *testing.T) {
	page, err := os.ReadFile("../docs/run-state.md")
	require.NoError(t, err)
	_, section, there := strings.Cut(string(page), "\n## Check and repair\n")
	require.True(t, there)
	findings, err := os.ReadFile(findingsFile)
	require.NoError(t, err)
	elsewhere := []rundir.Code{rundir.RunningWithoutLiveWorkflow, rundir.StoreDamaged, rundir.ClaimDamaged}
	var found, known []string
	row := regexp.MustCompile("^- `([a-z_]+)`: .+$")
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		if m := row.FindStringSubmatch(line); m != nil {
			found = append(found, m[1])
		}
	}
	for _, c := range rundir.Codes() {
		known = append(known, string(c))
		require.True(t, slices.Contains(elsewhere, c) || strings.Contains(string(findings), " "+string(c)+": "),
			"no row shows %s", c)
	}
	require.Equal(t, known, found)
}

// findingTexts are the texts that users read about each damage, by its name.
type findingTexts struct {
	want map[string]string
	mu   sync.Mutex
	have map[string]string
}

const findingsFile = "testdata/findings.txt"

// readFindings reads the recorded texts, and records others at the end of the test if they are to be updated.
func readFindings(t *testing.T) *findingTexts {
	t.Helper()
	raw, err := os.ReadFile(findingsFile)
	if !*update {
		require.NoError(t, err)
	}
	f := &findingTexts{want: map[string]string{}, have: map[string]string{}}
	for section := range strings.SplitSeq(string(raw), "\n## ") {
		name, text, _ := strings.Cut(strings.TrimPrefix(section, "## "), "\n")
		f.want[name] = strings.TrimRight(text, "\n")
	}
	t.Cleanup(func() {
		if !*update {
			return
		}
		var all strings.Builder
		for _, name := range slices.Sorted(maps.Keys(f.have)) {
			all.WriteString("## " + name + "\n" + f.have[name] + "\n")
		}
		require.NoError(t, os.WriteFile(findingsFile, []byte(all.String()), 0o644))
	})
	return f
}

func (f *findingTexts) compare(t *testing.T, name, text string) {
	t.Helper()
	f.mu.Lock()
	f.have[name] = text
	f.mu.Unlock()
	if !*update {
		require.Equal(t, f.want[name], text)
	}
}

// unstable are digests and sizes, which change with every new field of an event.
var unstable = regexp.MustCompile(`[0-9a-f]{12,}|[0-9]+( bytes)`)

// findings is what check and a dry repair print of a directory.
func findings(d rundir.Dir, report rundir.Report, dry rundir.RepairResult, after rundir.Report) string {
	var lines []string
	say := func(format string, args ...any) {
		text := strings.ReplaceAll(fmt.Sprintf(format, args...), d.Root, "RUN")
		lines = append(lines, unstable.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "…$1"))
	}
	say("%s; %s in meta.json, event %d", report.Snapshot.Status, report.MetaStatus, report.Snapshot.Seq)
	for _, i := range report.Issues {
		say("%s %s: %s. %s", i.Severity, i.Code, i.Message, i.Hint)
	}
	if dry.RepairHint != "" {
		say("repair: %s", dry.RepairHint)
	}
	for _, c := range dry.Changes {
		say("change %s (%s)", c.File, c.Code)
	}
	for _, i := range after.Issues {
		say("left: %s", i.Code)
	}
	return strings.Join(lines, "\n")
}
