package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// auditingTimes are the times that the screen showed for the call of auditor B, and when it showed each first.
var auditingTimes struct {
	texts []string
	at    []time.Time
}

// watchAuditing collects the first times that the screen shows for the running call of a cycle.
func watchAuditing(t *testing.T, s *screen) {
	shown := regexp.MustCompile(`Auditor-B +running (\d+s)`)
	until(t, "the screen shows three times of auditor B", func() bool {
		m := shown.FindStringSubmatch(strings.Join(s.lines(), "\n"))
		if n := len(auditingTimes.texts); m != nil && (n == 0 || auditingTimes.texts[n-1] != m[1]) {
			auditingTimes.texts, auditingTimes.at = append(auditingTimes.texts, m[1]), append(auditingTimes.at, time.Now())
		}
		return len(auditingTimes.texts) == 3
	})
}

// view returns the screen of a directory on a terminal of that width, before it is left, and what the terminal got.
func view(t *testing.T, columns int, dir, text string) (rows []string, s *screen) {
	t.Helper()
	s = quiet(t).open(t, columns, "watch", dir)
	s.shows(t, text)
	rows = s.lines()
	return rows, s
}

// leave ends the screen, and returns the exit code.
func leave(t *testing.T, s *screen) int {
	t.Helper()
	s.press(t, "q")
	return s.ends(t)
}

// viewRows are how a terminal shows a run.
func viewRows() rows {
	return rows{
		"TM-03": testWidth,
		"TM-04": func(t *testing.T) {
			interruptedRun.get(t)
			for i, at := range auditingTimes.at[1:] {
				require.Less(t, at.Sub(auditingTimes.at[i]), 10*time.Second, "%q", auditingTimes.texts)
			}
		},
		"TM-13": testDurations,
		"TM-14": testColours,
	}
}

// testWidth compares a terminal that is too narrow with the narrowest one that shows everything.
func testWidth(t *testing.T) {
	dir := demoRun.get(t).dir
	screens := map[int][]string{}
	for _, columns := range []int{60, 70, 100} {
		rows, s := view(t, columns, dir, "leave")
		require.Zero(t, leave(t, s))
		screens[columns] = rows
		frames := 0
		for _, row := range rows {
			require.LessOrEqual(t, len([]rune(row)), columns)
			if strings.HasSuffix(row, "┐") {
				require.Len(t, []rune(row), columns, "a frame is as wide as the terminal")
				frames++
			}
		}
		require.Equal(t, columns >= 70, frames >= 6, "%d frames at %d columns", frames, columns)
		require.Equal(t, columns < 70, strings.Contains(strings.Join(rows, "\n"), "…"), "cut at %d columns", columns)
	}
	for i, row := range screens[60] {
		if cut, found := strings.CutSuffix(row, "…"); found {
			require.True(t, strings.HasPrefix(screens[70][i], strings.TrimRight(cut, " ")), "%s", row)
		}
	}
}

// testDurations gives copies of a run other times, and reads how long they took.
func testDurations(t *testing.T) {
	from := demoRun.get(t)
	for want, d := range map[string]time.Duration{
		"4h 23m": 4*time.Hour + 23*time.Minute + 31*time.Second, "4m 32s": 4*time.Minute + 32*time.Second,
		"42s": 42 * time.Second,
	} {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.CopyFS(dir, os.DirFS(from.dir)))
		require.NoError(t, os.Remove(filepath.Join(dir, logs+"decisions.jsonl"))) // pauses do not count
		state := filepath.Join(dir, "_orchestrator", "state.json")
		s := from.state(t)
		ended := when(t, s.text(t, "completedAt"))
		s["startedAt"] = ended.Add(-d).Format("2006-01-02T15:04:05.000Z")
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(state, raw, 0o600))
		rows, seen := view(t, 100, dir, "leave")
		require.Zero(t, leave(t, seen))
		require.Regexp(t, `Elapsed +`+want+` `, strings.Join(rows, "\n"))
	}
}

// testColours looks at the cells of a terminal: bright green, yellow and red.
func testColours(t *testing.T) {
	dir := demoRun.get(t).dir
	budgetRun.get(t)
	for _, c := range []struct {
		dir, text string
		ink       ansi.BasicColor
	}{
		{dir, "✓ done", ansi.BrightGreen},
		{budgetStop, "‖ paused", ansi.BrightYellow},
		{budgetStop, "unrecovered", ansi.BrightRed},
	} {
		_, s := view(t, 100, c.dir, "leave")
		require.Equal(t, c.ink, s.ink(c.text), "%s in\n%s", c.text, strings.Join(s.lines(), "\n"))
		require.Equal(t, map[bool]int{true: 0, false: 3}[c.dir == dir], leave(t, s))
		codes := regexp.MustCompile("\x1b\\[[0-9;]*m").FindAllString(s.text(), -1)
		require.Equal(t, "\x1b[m", codes[len(codes)-1], "the colours are reset")
	}
}
