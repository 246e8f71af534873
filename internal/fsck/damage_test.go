package fsck_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
)

var update = flag.Bool("update", false, "rewrite testdata/findings.txt")

// damage is one row of the table: how a directory is damaged, what check finds, what a repair changes, and what check
// finds then.
type damage struct {
	name   string
	dir    string // name of the healthy directory
	do     change
	codes  []fsck.Code // all of them
	repair string      // fields that change; "operator": an operator must decide; "": nothing
	after  []fsck.Code // after the repair was applied
}

// change damages a directory.
type change = func(t *testing.T, d projector.Dir)

func damages() []damage {
	return slices.Concat(metaDamages(), journalDamages(), fileDamages(), projectDamages())
}

// repaired is a damage that a repair removes.
func repaired(name, dir string, do change, fields string, codes ...fsck.Code) damage {
	return damage{name, dir, do, codes, fields, nil}
}

// stays is a damage that a repair leaves as it is.
func stays(name, dir string, do change, codes ...fsck.Code) damage {
	return damage{name, dir, do, codes, "", codes}
}

// undecided is a damage that waits for an operator.
func undecided(name, dir string, do change, codes ...fsck.Code) damage {
	return damage{name, dir, do, codes, "operator", codes}
}

// leaves adds what check finds after the repair.
func (d damage) leaves(codes ...fsck.Code) damage {
	d.after = codes
	return d
}

func together(changes ...change) change {
	return func(t *testing.T, d projector.Dir) {
		for _, do := range changes {
			do(t, d)
		}
	}
}

func nothing(*testing.T, projector.Dir) {}

// withKey sets a key of meta.json.
func withKey(name, value string) change {
	return func(t *testing.T, d projector.Dir) { setKey(t, d, name, value) }
}

func withFile(name, text string) change {
	return func(t *testing.T, d projector.Dir) { write(t, d, name, text) }
}

func without(names ...string) change {
	return func(t *testing.T, d projector.Dir) {
		for _, name := range names {
			require.NoError(t, os.RemoveAll(d.Path(name)))
		}
	}
}

// with appends a text to a file.
func with(name, text string) change {
	return func(t *testing.T, d projector.Dir) { appendTo(t, d, name, text) }
}

// edited changes the text of a file.
func edited(name string, edit func(string) string) change {
	return func(t *testing.T, d projector.Dir) {
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
	return edited(layout.EventsFile, func(text string) string {
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
				require.ElementsMatch(t, row.codes, codesOf(report))

				o := fsck.RepairOptions{Blobs: blobs, Now: noon, By: "tests"}
				dry, err := fsck.Repair(t.Context(), d, o)
				require.NoError(t, err)
				texts.compare(t, dir.name+": "+row.name, findings(d, report, dry))
				require.Equal(t, row.repair, planned(dry))
				require.Equal(t, append([]fsck.Code{}, codesOf(report)...), dry.IssueCodes)
				require.False(t, dry.Applied)
				require.Equal(t, hurt, look(t, d), "check and dry run only read")

				o.Apply = true
				done, err := fsck.Repair(t.Context(), d, o)
				require.NoError(t, err)
				require.Equal(t, dry.Changes, done.Changes)
				require.Equal(t, len(dry.Changes) > 0, done.Applied)
				require.ElementsMatch(t, row.after, codesOf(check(t, d)))
				if done.Applied {
					requireBackups(t, d, hurt, done)
				}
				repaired := look(t, d)
				again, err := fsck.Repair(t.Context(), d, o)
				require.NoError(t, err)
				require.False(t, again.Applied)
				require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
			})
		}
	}
}

// requireBackups requires that what was replaced is in the backup, and that the audit file records it.
func requireBackups(t *testing.T, d projector.Dir, hurt map[string]string, done fsck.RepairResult) {
	t.Helper()
	now := look(t, d)
	if old, there := hurt[layout.MetaFile]; there {
		require.Equal(t, old, now[done.BackupPath])
	}
	folder := filepath.Dir(done.BackupPath) + "/"
	for name, text := range hurt {
		inBackup := slices.Contains([]string{now[folder+filepath.Base(name)], now[folder+name]}, text)
		rewritten := strings.HasPrefix(name, "_orchestrator/checkpoints/") ||
			strings.HasPrefix(name, "_orchestrator/passes/") || strings.HasPrefix(name, "snapshots/") ||
			slices.Contains([]string{layout.EventsFile, layout.SpendFile, "run.lock"}, name)
		require.True(t, strings.HasPrefix(now[name], text) || inBackup || rewritten, "%s is lost", name)
	}
	var audit struct {
		Version int           `json:"version"`
		RunID   string        `json:"run_id"`
		By      string        `json:"by"`
		At      string        `json:"at"`
		Changes []fsck.Change `json:"changes"`
		Codes   []fsck.Code   `json:"issue_codes"`
		Backups []string      `json:"backups"`
	}
	require.NoError(t, json.Unmarshal([]byte(now[done.AuditPath]), &audit))
	require.Equal(t, 1, audit.Version)
	require.Equal(t, "run-1", audit.RunID)
	require.Equal(t, "tests", audit.By)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(audit.Backups))), len(audit.Backups), "each once")
	for _, name := range audit.Backups {
		require.True(t, strings.HasPrefix(name, filepath.Dir(done.AuditPath)+"/"))
		require.Contains(t, now, name)
	}
	require.Equal(t, "2026-01-03T12:00:00Z", audit.At)
	require.Equal(t, done.IssueCodes, audit.Codes)
	require.Len(t, audit.Changes, len(done.Changes))
}

// TestDocsListEveryCode: docs/run-state.md lists each code once, in the order and with the severity that the program
// has for it. A row of the table shows it, unless it is not in the directory: a lost workflow, damage in the store.
func TestDocsListEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/run-state.md")
	require.NoError(t, err)
	_, section, there := strings.Cut(string(page), "\n## Check and repair\n")
	require.True(t, there)
	shown := map[fsck.Code]bool{fsck.RunningWithoutLiveWorkflow: true, fsck.StoreDamaged: true}
	for _, row := range damages() {
		for _, c := range row.codes {
			shown[c] = true
		}
	}
	var found, known []string
	severity := ""
	row := regexp.MustCompile("^- `([a-z_]+)`: .+$")
	for line := range strings.Lines(section) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			severity = map[string]string{"Errors": "error", "Warnings": "warning", "Information": "info"}[heading]
		} else if m := row.FindStringSubmatch(line); m != nil {
			found = append(found, m[1]+" "+severity)
		}
	}
	for _, c := range fsck.Codes() {
		known = append(known, string(c.Code)+" "+string(c.Severity))
		require.NotEmpty(t, c.Hint)
		require.True(t, shown[c.Code], "no row shows %s", c.Code)
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
func findings(d projector.Dir, report fsck.Report, dry fsck.RepairResult) string {
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
		say("change %s: %.80s => %.80s", c.Field, c.Before, c.After)
	}
	return strings.Join(lines, "\n")
}
