package fsck_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/projector"
)

// findingTexts are the texts that users read about each injury, by the injury.
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
